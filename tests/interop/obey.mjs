// Calls with Node's own fetch, and reads the fields with a parser of structured fields from npm.
// Usage: node obey.mjs URL CALLS. Prints as JSON what it was told.
import { parseList } from "structured-headers";

const [url, calls] = [process.argv[2], Number(process.argv[3])];
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

function list(response, field) {
  return parseList(response.headers.get(field)).map(([name, parameters]) => [
    name,
    Object.fromEntries(parameters),
  ]);
}

async function call(key) {
  const response = await fetch(url, { headers: { "X-API-Key": key } });
  return {
    status: response.status,
    policies: list(response, "RateLimit-Policy"),
    limits: list(response, "RateLimit"),
    wait: response.headers.get("Retry-After"),
    body: await response.json(),
  };
}

// Never sends when it was told that nothing is left.
async function lookAhead(key) {
  const answers = [];
  while (answers.length < calls) {
    const answer = await call(key);
    answers.push(answer);
    const spent = answer.limits.filter(([, { r }]) => r === 0);
    await sleep(Math.max(0, ...spent.map(([, { t }]) => t)));
  }
  return answers;
}

// Sends all at once, and what was refused again after the wait that it was told.
async function insist(key) {
  const answers = [];
  const one = async () => {
    const answer = await call(key);
    answers.push(answer);
    if (answer.status === 429) {
      await sleep(Number(answer.wait));
      await one();
    }
  };
  await Promise.all(Array.from({ length: calls }, one));
  return answers;
}

const [ahead, insisting] = await Promise.all([lookAhead("node-ahead"), insist("node-insists")]);
console.log(JSON.stringify({ ahead, insisting }));

/* What of a page somebody can't use who does not see it, or has no mouse. Gives a list of faults. */
const faults = [];
const shown = (element) => element.getClientRects().length > 0;
const byIds = (element, attribute) =>
  (element.getAttribute(attribute) || "").split(/\s+/).filter(Boolean)
    .map((id) => document.getElementById(id)?.textContent || "").join(" ");
const told = (element) => {
  const named = element.getAttribute("aria-label") || byIds(element, "aria-labelledby");
  if (named && named.trim()) return named.trim();
  const labels = [...(element.labels || [])].map((label) => label.innerText || label.title ||
    [...label.querySelectorAll("[alt]")].map((image) => image.alt).join(" "));
  const texts = [...labels, element.querySelector(":scope > title")?.textContent,
    element.title, element.alt];
  if (["A", "BUTTON", "SUMMARY"].includes(element.tagName)) texts.push(element.innerText,
    ...[...element.querySelectorAll("[alt], [aria-label], [title]")].map((inner) => inner.alt ||
      inner.getAttribute("aria-label") || inner.title));
  if (["submit", "reset", "button"].includes(element.type)) texts.push(element.value);
  return texts.filter(Boolean).join(" ").trim();
};
const describe = (element) => element.outerHTML.slice(0, 120);

const NEEDED = "input:not([type=hidden]), select, textarea, button, a[href], meter, progress, " +
  "svg:not([aria-hidden=true]), img:not([alt=''])";
for (const element of document.querySelectorAll(NEEDED)) {
  if (shown(element) && !told(element)) faults.push("no name: " + describe(element));
}
for (const element of document.querySelectorAll("a, button, input:not([type=hidden]), summary")) {
  if (shown(element) && !element.disabled && element.tabIndex < 0) {
    faults.push("not reached by Tab: " + describe(element));
  }
}
for (const element of document.querySelectorAll("[onclick], [style]")) {
  if (element.closest("#content") && element.hasAttribute("onclick")) {
    faults.push("inline: " + describe(element));
  }
}
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) {
  faults.push("twice: #" + id);
}
if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");

/* Contrast of our own texts, after WCAG 2: at least 4.5, of large ones 3. */
const channels = (color) => color.match(/[\d.]+/g).map(Number);
const luminance = ([red, green, blue]) => {
  const [r, g, b] = [red, green, blue].map((value) => {
    value /= 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const over = (front, back) => {
  const alpha = front[3] ?? 1;
  return [0, 1, 2].map((at) => front[at] * alpha + back[at] * (1 - alpha));
};
const background = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    layers.unshift(channels(getComputedStyle(at).backgroundColor));
  }
  const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  return layers.reduce((below, layer) => over(layer, below), canvas);
};
for (const element of document.querySelectorAll('[class*="ratelimits"], [class*="ratelimits"] *')) {
  const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!hasText || !shown(element)) continue;
  const style = getComputedStyle(element);
  const isText = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
  if (isText === "none") continue;
  const back = background(element);
  const lights = [luminance(over(channels(isText), back)), luminance(back)];
  const ratio = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
  const isLarge = parseFloat(style.fontSize) >= 24;
  if (ratio < (isLarge ? 3 : 4.5)) {
    faults.push(`contrast ${ratio.toFixed(1)}: ` + describe(element));
  }
}
return faults;

"""What a Redis or Valkey that counts should be like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.stores.facts import ClusterFacts, Facts, Keys, RedisFacts

from .findings import Finding, bytes_text, time_text

# Parts of the memory that it may use: from here on somebody should know, or act at once.
NEARLY, FULL = 0.8, 0.95


def judge(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts, RedisFacts):
        yield from _judged(facts)
    elif isinstance(facts, ClusterFacts):
        for name, node in facts.nodes.items():
            found = [_away()] if node is None else _judged(node)
            yield from (_of_node(name, finding) for finding in found)


def _away() -> Finding:
    advice = _("STORE_FAILURE decides for the callers whose keys it holds, until it is back.")
    return Finding("store.server", "problem", _("It does not answer."), advice)


def _of_node(name: str, found: Finding) -> Finding:
    value = {"address": name, **found.value}
    return replace(found, text=f"{name}: {found.text}", value=value)


def _judged(facts: RedisFacts) -> Iterator[Finding]:
    if facts.info is None:
        text = _("The server lets this user not ask for it (%s).") % "INFO"
        advice = _("To see it here, allow the user %s.") % "+info"
        yield Finding("store.server", "warning", text, advice)
    else:
        yield _server(facts.info)
        yield _role(facts.info)
        yield _memory(facts.info)
        yield _evicted(facts.info)
        yield _persistence(facts.info, facts.save)
    yield _keys(facts.keys)


def _server(info: Mapping[str, Any]) -> Finding:
    valkey = info.get("valkey_version")
    value = {
        "product": "valkey" if valkey else "redis",
        "version": str(valkey or info.get("redis_version")),
        "uptime_seconds": info.get("uptime_in_seconds", 0),
    }
    up = time_text(value["uptime_seconds"])
    text = _("%(product)s %(version)s, up for %(time)s") % {**value, "time": up}
    return Finding("store.server", "ok", text, value=value)


def _role(info: Mapping[str, Any]) -> Finding:
    role, replicas = info.get("role", "master"), info.get("connected_slaves", 0)
    cluster = bool(info.get("cluster_enabled", 0))
    value = {"role": role, "replicas": replicas, "cluster": cluster}
    if role != "master":
        advice = _("Give CACHES the address of the primary: counting writes.")
        return Finding("store.role", "problem", _("This server is a replica."), advice, value)
    text = ngettext(
        "primary with %(count)s replica", "primary with %(count)s replicas", replicas
    ) % {"count": replicas}
    if cluster:
        text = _("%s, of a cluster") % text
    return Finding("store.role", "ok", text, value=value)


def _memory(info: Mapping[str, Any]) -> Finding:
    used, most = info.get("used_memory", 0), info.get("maxmemory", 0)
    policy = info.get("maxmemory_policy", "noeviction")
    value = {"used_bytes": used, "max_bytes": most, "policy": policy}
    if not most:
        text = _("%s used, no maxmemory") % bytes_text(used)
        return Finding("store.memory", "ok", text, value=value)
    told = {"used": bytes_text(used), "most": bytes_text(most), "policy": policy}
    if policy != "noeviction":
        # All our keys have an end, so that "volatile" takes them as "allkeys" does.
        text = _("%(used)s of %(most)s used, %(policy)s: a bucket that is evicted is full again")
        advice = _("CONFIG SET maxmemory-policy noeviction, on a server for the limits alone.")
        return Finding("store.memory", "warning", text % told, advice, value)
    text = _("%(used)s of %(most)s used, %(policy)s") % told
    advice = _(
        "Raise maxmemory: when it is reached nothing can be counted, and STORE_FAILURE decides."
    )
    if used >= FULL * most:
        return Finding("store.memory", "problem", text, advice, value)
    if used >= NEARLY * most:
        return Finding("store.memory", "warning", text, advice, value)
    return Finding("store.memory", "ok", text, value=value)


def _evicted(info: Mapping[str, Any]) -> Finding:
    evicted = info.get("evicted_keys", 0)
    text = ngettext(
        "%(count)s key evicted since the server was started",
        "%(count)s keys evicted since the server was started",
        evicted,
    ) % {"count": f"{evicted:,}"}
    value = {"evicted_keys": evicted}
    if not evicted:
        return Finding("store.evictions", "ok", text, value=value)
    advice = _("Buckets may have been among them. More memory, or a server for the limits alone.")
    return Finding("store.evictions", "warning", text, advice, value)


def _persistence(info: Mapping[str, Any], save: str | None) -> Finding:
    appends = bool(info.get("aof_enabled", 0))
    failing = "ok" not in (
        info.get("aof_last_write_status", "ok") if appends else info.get("rdb_last_bgsave_status"),
    )
    value = {"aof": appends, "snapshots": save, "failing": failing}
    if failing:
        advice = _("It refuses writes until it can save again: look at its log, and at its disk.")
        return Finding("store.persistence", "problem", _("It can't write to disk."), advice, value)
    if appends:
        text = _("append-only file: a restart forgets what was counted in the last second")
    elif save:
        text = _("snapshots (%s): a restart forgets what was counted since the last") % save
    elif save is None:
        text = _("no append-only file; whether snapshots are kept is not told")
    else:
        text = _("none: after a restart all buckets are full")
    return Finding("store.persistence", "ok", text, value=value)


def _keys(keys: Keys | None) -> Finding:
    if keys is None:
        text = _("Keys of the limits can't be told from others, or not asked for.")
        return Finding("store.keys", "ok", text)
    value = {
        "looked_at": keys.looked_at,
        "ours": keys.ours,
        "without_ttl": keys.endless,
        "complete": keys.complete,
    }
    if keys.complete:
        text = _("%(ours)s of ours among all %(count)s keys looked at")
    else:
        text = _("%(ours)s of ours among some %(count)s keys looked at")
    text %= {"ours": f"{keys.ours:,}", "count": f"{keys.looked_at:,}"}
    if not keys.endless:
        return Finding("store.keys", "ok", _("%s, each with an end") % text, value=value)
    names, more = ", ".join(keys.examples), keys.endless - len(keys.examples)
    if more > 0:
        names = _("%(names)s and %(count)s more") % {"names": names, "count": f"{more:,}"}
    text = _("%(text)s; without an end: %(names)s") % {"text": text, "names": names}
    advice = _(
        "Somebody else wrote them, or made them stay. Buckets in use get an end with their next "
        "use, versions from the next process to start; the others may be deleted."
    )
    return Finding("store.keys", "warning", text, advice, value)

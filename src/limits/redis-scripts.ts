import { createHash } from "node:crypto";

/** A script with its hash. */
export interface RedisScript {
  readonly text: string;
  readonly sha1: string;
}

/**
 * The arithmetic of `bucket.ts` and `memory.ts` in Lua; a test compares their decisions. A subject has two keys: a hash of its
 * buckets (`r`, `ra`: level and time of requests; `t`, `ta`: of tokens) and a sorted set of concurrency units by expiry. Only
 * existing keys are deleted: after any write command in a script, Redis no longer refuses further ones for lack of memory. Numbers
 * are written with all digits, because Lua's default has 14. Keys expire a minute after they equal missing ones, in case a clock goes
 * back.
 */
const SHARED = `
local SPARE = 60000
local now = tonumber(ARGV[1])
local lease = tonumber(ARGV[2])
if not now then
  local time = redis.call("TIME")
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function whole(number) return string.format("%.0f", number) end
local function refill(level, at, capacity, rate)
  if not level then return capacity, now end
  local back = at - now
  if back > 0 then return math.min(level, capacity), (back > 60000) and now or at end
  return math.min(level - back * rate, capacity), now
end
local function wait(level, at, units, rate)
  if level >= units then return 0 end
  return math.ceil((units - level) / rate) + (at - now)
end
local function dropEnded(places)
  if redis.call("ZCOUNT", places, "-inf", whole(now)) > 0 then
    redis.call("ZREMRANGEBYSCORE", places, "-inf", whole(now))
  end
  local late = redis.call("ZRANGEBYSCORE", places, "(" .. whole(now + lease), "+inf")
  for _, id in ipairs(late) do redis.call("ZADD", places, whole(now + lease), id) end
end
local function read(key)
  local kept = redis.call("HMGET", key, "r", "ra", "t", "ta")
  return { tonumber(kept[1]), tonumber(kept[3]) }, { tonumber(kept[2]), tonumber(kept[4]) }
end
local names = { { "r", "ra" }, { "t", "ta" } }
`;

/**
 * KEYS: buckets and concurrency units of each subject. ARGV: time or "", lease, id; then for each subject capacity, rate and
 * demand of requests and of tokens (a rate of 0: not limited; a demand of "": none), and its concurrency limit (0: not
 * limited). Returns [0 or the number of the refusing subject, 1 requests or 2 tokens or 3 concurrency, wait in milliseconds, then
 * levels of requests and tokens of each subject].
 */
const TAKE = `${SHARED}
local id = ARGV[3]
local longest, by, limit = 0, 0, 0
local subjects = #KEYS / 2
local states = {}
for i = 1, subjects do
  local base = 3 + (i - 1) * 7
  local levels, times = read(KEYS[2 * i - 1])
  for kind = 1, 2 do
    local at = base + (kind - 1) * 3
    local capacity, rate, units = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    if rate == 0 then
      levels[kind] = nil
    else
      levels[kind], times[kind] = refill(levels[kind], times[kind], capacity, rate)
      local after = units and wait(levels[kind], times[kind], units, rate) or 0
      if after > longest then longest, by, limit = after, i, kind end
    end
  end
  local places = tonumber(ARGV[base + 7])
  dropEnded(KEYS[2 * i])
  if places > 0 and redis.call("ZCARD", KEYS[2 * i]) >= places and 1000 > longest then
    longest, by, limit = 1000, i, 3
  end
  states[i] = { levels, times }
end
local reply = { by, limit, longest }
for i = 1, subjects do
  local base = 3 + (i - 1) * 7
  local levels, times = states[i][1], states[i][2]
  local idle = 0
  for kind = 1, 2 do
    local at = base + (kind - 1) * 3
    local capacity, rate, units = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    if rate == 0 then
      if times[kind] then redis.call("HDEL", KEYS[2 * i - 1], names[kind][1], names[kind][2]) end
      reply[#reply + 1] = 0
    else
      if by == 0 then levels[kind] = math.max(levels[kind] - (units or 0), -rate * 3600000) end
      redis.call("HSET", KEYS[2 * i - 1], names[kind][1], whole(levels[kind]), names[kind][2], whole(times[kind]))
      idle = math.max(idle, wait(levels[kind], times[kind], capacity, rate))
      reply[#reply + 1] = levels[kind]
    end
  end
  redis.call("PEXPIRE", KEYS[2 * i - 1], whole(idle + SPARE))
  if by == 0 and tonumber(ARGV[base + 7]) > 0 then
    redis.call("ZADD", KEYS[2 * i], whole(now + lease), id)
    redis.call("PEXPIRE", KEYS[2 * i], whole(lease + SPARE))
  end
end
return reply
`;

/**
 * KEYS as above. ARGV: time or "", lease, id; then for each subject capacity, rate and gain of requests and of tokens.
 */
const RELEASE = `${SHARED}
local id = ARGV[3]
for i = 1, #KEYS / 2 do
  dropEnded(KEYS[2 * i])
  redis.call("ZREM", KEYS[2 * i], id)
end
for i = 1, #KEYS / 2 do
  local base = 3 + (i - 1) * 6
  local levels, times = read(KEYS[2 * i - 1])
  local idle = 0
  for kind = 1, 2 do
    local at = base + (kind - 1) * 3
    local capacity, rate, units = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    local level, since = levels[kind], times[kind]
    if rate > 0 and units < 0 then
      if not level or level <= capacity then level, since = refill(level, since, capacity, rate) end
      level = math.max(level + units, math.min(level, -rate * 3600000))
    elseif level then
      level = level + units
    end
    if rate > 0 and level then
      redis.call("HSET", KEYS[2 * i - 1], names[kind][1], whole(level), names[kind][2], whole(since))
      idle = math.max(idle, wait(level, since, capacity, rate))
    end
  end
  if redis.call("PTTL", KEYS[2 * i - 1]) < idle + SPARE then redis.call("PEXPIRE", KEYS[2 * i - 1], whole(idle + SPARE)) end
end
return 0
`;

/** KEYS: the concurrency units of each id. ARGV: time or "", lease, unused, ids. */
const RENEW = `${SHARED}
for i = 1, #KEYS do
  dropEnded(KEYS[i])
  redis.call("ZADD", KEYS[i], whole(now + lease), ARGV[i + 3])
  redis.call("PEXPIRE", KEYS[i], whole(lease + SPARE))
end
return 0
`;

/** KEYS: the set of replicas. ARGV: time or "", lease, replica. Returns the number of replicas. */
const JOIN = `${SHARED}
dropEnded(KEYS[1])
redis.call("ZADD", KEYS[1], whole(now + lease), ARGV[3])
redis.call("PEXPIRE", KEYS[1], whole(lease + SPARE))
return redis.call("ZCARD", KEYS[1])
`;

/** KEYS: the notes of all replicas. ARGV: time or "", TTL of a note, replica, its note. Returns the notes of the other replicas. */
const NOTES = `${SHARED}
local notes = {}
local all = redis.call("HGETALL", KEYS[1])
for i = 1, #all, 2 do
  local ends, note = string.match(all[i + 1], "^(%d+) (.*)$")
  if ends == nil or tonumber(ends) <= now or tonumber(ends) > now + lease then redis.call("HDEL", KEYS[1], all[i])
  elseif all[i] ~= ARGV[3] then notes[#notes + 1] = note end
end
redis.call("HSET", KEYS[1], ARGV[3], whole(now + lease) .. " " .. ARGV[4])
redis.call("PEXPIRE", KEYS[1], whole(lease + SPARE))
return notes
`;

/** Limit of changed keys that are kept, and of those returned at once. */
const MAX_CHANGES = 10_000;
export const CHANGES_PAGE = 1_000;

/**
 * KEYS: the changed API keys. ARGV: time or "", TTL of a change, start time of the requested changes, hashes of the keys that have just
 * changed. Returns the time, then the changed keys in order, each with its time.
 */
const CHANGES = `${SHARED}
for i = 4, #ARGV do redis.call("ZADD", KEYS[1], whole(now), ARGV[i]) end
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", whole(now - lease))
redis.call("ZREMRANGEBYRANK", KEYS[1], 0, -${MAX_CHANGES + 1})
redis.call("PEXPIRE", KEYS[1], whole(lease + SPARE))
local found = redis.call("ZRANGEBYSCORE", KEYS[1], ARGV[3], "+inf", "WITHSCORES", "LIMIT", 0, ${CHANGES_PAGE})
table.insert(found, 1, whole(now))
return found
`;

function toScript(text: string): RedisScript {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

/** Scripts are atomic: Redis runs one at a time. */
export const redisScripts = {
  take: toScript(TAKE),
  release: toScript(RELEASE),
  renew: toScript(RENEW),
  join: toScript(JOIN),
  notes: toScript(NOTES),
  changes: toScript(CHANGES),
} as const;

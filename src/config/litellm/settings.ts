import { toMs } from "./deployment.ts";
import { isVariable, type Part } from "./part.ts";
import type { Remarks } from "./remarks.ts";

/** Sections of the result beside models and providers. */
type Sections = Readonly<Record<string, unknown>>;

/** The parts of LiteLLM's file with settings. */
export interface SettingParts {
  readonly router: Part;
  readonly general: Part;
  readonly module: Part;
}

/** Converts settings of the whole gateway. */
export function readSettings({ router, general, module }: SettingParts, remarks: Remarks): Sections {
  return {
    ...readTimeouts(router, module, remarks),
    ...readBreaker(router, module, remarks),
    ...readRedis(router, remarks),
    ...readOverload(general),
  };
}

function readTimeouts(router: Part, module: Part, remarks: Remarks): Sections {
  const ofRouter = router.takeNumber("timeout");
  const ofModule = module.takeNumber("request_timeout");
  const stream = router.takeNumber("stream_timeout");
  const seconds = ofRouter ?? ofModule;
  if (seconds !== undefined)
    remarks.check(
      ofRouter === undefined ? [...module.path, "request_timeout"] : [...router.path, "timeout"],
      "total_ms is for all attempts of a request together",
    );
  const timeouts = {
    ...(stream !== undefined && { first_content_ms: toMs(stream) }),
    ...(seconds !== undefined && { total_ms: toMs(seconds) }),
  };
  return Object.keys(timeouts).length === 0 ? {} : { timeouts };
}

const MAX_FAILURES = 1_000;
/** Parley's default of `breaker.max_open_ms`. */
const MAX_OPEN_MS = 30_000;

function readBreaker(router: Part, module: Part, remarks: Remarks): Sections {
  const allowed = router.takeNumber("allowed_fails") ?? module.takeNumber("allowed_fails");
  const cooldown = router.takeNumber("cooldown_time") ?? module.takeNumber("cooldown_time");
  if (allowed === undefined && cooldown === undefined) return {};
  remarks.check(
    [...router.path, allowed === undefined ? "cooldown_time" : "allowed_fails"],
    "a circuit breaker opens after failures in a row, or more than half of the last twenty, and asks one probe",
  );
  return {
    breaker: {
      ...(allowed !== undefined && { failures: Math.min(MAX_FAILURES, Math.max(1, Math.round(allowed) + 1)) }),
      ...(cooldown !== undefined && {
        open_ms: toMs(cooldown),
        max_open_ms: Math.max(MAX_OPEN_MS, toMs(cooldown)),
      }),
    },
  };
}

function readRedis(router: Part, remarks: Remarks): Sections {
  const url = router.takeText("redis_url");
  const host = router.takeText("redis_host");
  const port = router.takeText("redis_port") ?? "6379";
  const password = router.takeText("redis_password");
  const place = [...router.path, url === undefined ? "redis_host" : "redis_url"];
  if (url === undefined && host === undefined) return {};
  remarks.check(place, "Redis counts rates of keys and accounts for all replicas, which also need database.url");
  if (url !== undefined) {
    if (isVariable(url) || URL.parse(url)?.password === "") return { redis: { url } };
    remarks.check(place, "it is a secret in the file: set REDIS_URL to it in the environment of Parley");
    return { redis: { url: "${REDIS_URL}" } };
  }
  if (password !== undefined && !isVariable(password))
    remarks.check(
      [...router.path, "redis_password"],
      "it is a secret in the file: set REDIS_PASSWORD to it in the environment of Parley",
    );
  const secret = password === undefined || isVariable(password) ? password : "${REDIS_PASSWORD}";
  return { redis: { url: `redis://${secret === undefined ? "" : `:${secret}@`}${host}:${port}` } };
}

function readOverload(general: Part): Sections {
  const calls = general.takeNumber("global_max_parallel_requests");
  return calls === undefined || calls < 1 ? {} : { overload: { max_calls: Math.min(1_000_000, Math.round(calls)) } };
}

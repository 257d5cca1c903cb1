import { MUTATIONS_OF_THE_SIMULATION } from "./of-the-simulation.ts";

/** A promise of Parley's, and a small change of its source that breaks it. */
export interface Mutation {
  /** What is promised, in words. */
  readonly promise: string;
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly text: string;
  /** What it is replaced by. */
  readonly by: string;
  /** Files of tests of which at least one has to fail; those of `test/faults` too. */
  readonly tests: readonly string[];
}

/** Each of these has to be noticed: `npm run mutations` makes one after the other and runs its tests. */
export const MUTATIONS: readonly Mutation[] = [
  {
    promise: "what was reserved is given back when a completion is over",
    file: "src/core/meter.ts",
    text: "    this.#reservation.release(tokens.prompt + tokens.completion);\n",
    by: "",
    tests: ["test/core/completions.test.ts"],
  },
  {
    promise: "an entry is durable before the caller learns of the end",
    file: "src/core/meter.ts",
    text: "await written;",
    by: "void written;",
    tests: ["test/core/completions.test.ts"],
  },
  {
    promise: "a completion whose caller left is in the ledger",
    file: "src/core/meter.ts",
    text: "if (this.#reservation === undefined) return undefined;",
    by: 'if (this.#reservation === undefined || this.#outcome === "cancelled") return undefined;',
    tests: ["test/core/completions.test.ts"],
  },
  {
    promise: "fallback models need permission as well",
    file: "src/core/admission.ts",
    text: "models: candidates.map((model) => model.id)",
    by: "models: [primary.id]",
    tests: ["test/core/completions.test.ts"],
  },
  {
    promise: "nothing is tried again once content has reached the caller",
    file: "src/router/attempts.ts",
    text: "if (over || committed || !isUpstreamFailure(failure))",
    by: "if (over || !isUpstreamFailure(failure))",
    tests: ["test/router/promises.test.ts"],
  },
  {
    promise: "all attempts together take no longer than a completion may",
    file: "src/router/attempts.ts",
    text: '    this.#overall.start(primary.timeouts.totalMs, "The completion took longer than this gateway allows.");\n',
    by: "",
    tests: ["test/router/attempts.test.ts", "test/router/promises.test.ts"],
  },
  {
    promise: "no timer is left when a completion is over",
    file: "src/router/attempts.ts",
    text: "    this.#overall.close();\n",
    by: "",
    tests: ["test/router/promises.test.ts"],
  },
  {
    promise: "retries do not multiply what a failing provider is asked",
    file: "src/router/retry-budget.ts",
    text: "if (this.#retries >= Math.max(FLOOR, this.#requests * SHARE)) return undefined;",
    by: "",
    tests: ["test/router/retry-budget.test.ts"],
  },
  {
    promise: "a provider that fails is asked 1.2 times for each request, and no more often",
    file: "src/router/attempts.ts",
    text: "    if (this.#giveBack === undefined) return undefined;\n",
    by: "",
    tests: ["test/faults/failing-upstreams.test.ts"],
  },
  {
    promise: "a request that goes round in circles comes to an end",
    file: "src/providers/openai/provider.ts",
    text: "String(hops + 1)",
    by: "String(hops)",
    tests: ["test/faults/failing-upstreams.test.ts"],
  },
  {
    promise: "an upstream model that keeps failing is left alone",
    file: "src/router/breaker.ts",
    text: 'if (this.state !== "closed" && !probe) return this.#resting();',
    by: "",
    tests: ["test/router/breaker.test.ts"],
  },
  {
    promise: "a stream that was cut is no answer",
    file: "src/providers/anthropic/stream.ts",
    text: "if (this.#ending === undefined) throw truncated();",
    by: "if (this.#ending === undefined) return void (this.#complete = true);",
    tests: ["test/providers/agreement.test.ts", "test/providers/anthropic/provider.test.ts"],
  },
  {
    promise: "a stream that fails after its beginning does not end like a good one",
    file: "src/front/chat.ts",
    text: "else writer.abort(toErrorEvent(failure));",
    by: 'else writer.end("data: [DONE]\\n\\n");',
    tests: ["test/entrances/scenarios.test.ts", "test/product/fixtures.test.ts"],
  },
  {
    promise: "a provider is not read faster than the caller reads",
    file: "src/front/chat.ts",
    text: "if (room !== undefined) await room;",
    by: "void room;",
    tests: ["test/product/back-pressure.test.ts"],
  },
  {
    promise: "a caller who leaves ends its completion",
    file: "src/edge/calls.ts",
    text: 'else controller.abort(new Failure("cancelled", "The caller left."));',
    by: "",
    tests: ["test/edge/calls.test.ts", "test/entrances/robustness.test.ts"],
  },
  {
    promise: "a database that cannot be asked is no reason to call a key wrong",
    file: "src/access/key-cache.ts",
    text: "if (entry === undefined || !isUsable(entry, askedAtMs)) throw unavailable(cause);",
    by: "if (entry === undefined || !isUsable(entry, askedAtMs)) throw refused();",
    tests: ["test/access/key-cache.test.ts"],
  },
  {
    promise: "a revoked key is not served from the cache",
    file: "src/access/key-cache.ts",
    text: "      known.delete(hash);\n      unknown.delete(hash);\n      // An answer",
    by: "      unknown.delete(hash);\n      // An answer",
    tests: ["test/access/key-cache.test.ts"],
  },
  {
    promise: "an answer that was on its way when a key was revoked is not kept",
    file: "src/access/key-cache.ts",
    text: "        if (current()) {\n",
    by: "        {\n",
    tests: ["test/access/key-cache.test.ts"],
  },
  {
    promise: "a key ends at its expiry although it is remembered",
    file: "src/access/key-cache.ts",
    text: "if (entry !== undefined && nowMs < entry.refreshAtMs) return checkExpiry(entry.principal, clock);",
    by: "if (entry !== undefined && nowMs < entry.refreshAtMs) return entry.principal;",
    tests: ["test/access/key-cache.test.ts"],
  },
  {
    promise: "a budget is decided with what the requests before it hold",
    file: "src/store/budget-transactions.ts",
    text: "      taken.set(subject, taken.get(subject)! + amountMicroUsd);\n",
    by: "",
    tests: ["test/store/contracts.test.ts"],
  },
  {
    promise: "a budget knows what was spent a moment ago",
    file: "src/store/budget-transactions.ts",
    text: '  if (statements.kind === "sqlite") await foldAllSegments(statements);\n',
    by: "",
    tests: ["test/store/contracts.test.ts", "test/store/sqlite.test.ts"],
  },
  {
    promise: "an entry that is written twice counts once",
    file: "src/store/ledger-insert.ts",
    text: "return all.filter(({ row }) => ids.has(row.id));",
    by: "return all.filter(() => ids.size >= 0);",
    tests: ["test/store/contracts.test.ts"],
  },
  {
    promise: "the ledger refuses new completions before too many entries wait",
    file: "src/ledger/ledger.ts",
    text: "if (this.#waiting.length < MAX_WAITING) return;",
    by: "if (this.#waiting.length >= 0) return;",
    tests: ["test/ledger/ledger.test.ts"],
  },
  {
    promise: "limits stay limits when the shared counters are away",
    file: "src/limits/shared-rates.ts",
    text: "const share = await local.take({ ...demand, subjects: shares });",
    by: "const share = await local.take({ ...demand, subjects: [] });",
    tests: ["test/limits/shared-rates.test.ts"],
  },
  {
    promise: "two credentials in one request are refused",
    file: "src/front/server.ts",
    text: "if (credentials > 1)",
    by: "if (credentials > 2)",
    tests: ["test/product/hostile-http.test.ts"],
  },
  {
    promise: "an RPC of the dashboard that is an administrator's is nobody else's",
    file: "src/console/policy.ts",
    text: 'if (who === "administrator") requireAdministrator(signedIn);',
    by: "",
    tests: ["test/console/gate.test.ts", "test/console/services.test.ts"],
  },
  {
    promise: "a provider at a private address is not connected to",
    file: "src/providers/public-lookup.ts",
    text: "if (error === null && addresses.some(isPrivateAddress))",
    by: "if (error === null && addresses.length === 0)",
    tests: ["test/providers/http.test.ts"],
  },
  {
    promise: "a provider's words are shown without its secrets",
    file: "src/providers/scrub.ts",
    text: '  [/\\bBearer\\s{1,3}\\S+/gi, "[key]"],\n',
    by: "",
    tests: ["test/providers/scrub.test.ts"],
  },
  {
    promise: "no more completions are begun than the event loop has time for",
    file: "src/edge/overload/begin-rate.ts",
    text: "const TARGET = 0.95;",
    by: "const TARGET = 9.5;",
    tests: ["test/edge/overload/admission-control.test.ts"],
  },
  {
    promise: "under overload the event loop is given back between parts of answers",
    file: "src/providers/stream-turns.ts",
    text: "    if (!this.#hasTime(nowMs)) return void setImmediate(this.#next);\n",
    by: "",
    tests: ["test/providers/stream-turns.test.ts"],
  },
  {
    promise: "under overload fewer are begun while parts of answers wait",
    file: "src/edge/overload/admission-control.ts",
    text: "Math.max(lateMs, waitedMs)",
    by: "Math.max(lateMs, 0 * waitedMs)",
    tests: ["test/edge/overload/admission-control.test.ts"],
  },
  {
    promise: "keys take turns under overload",
    file: "src/edge/overload/fair-queue.ts",
    text: "if (this.#queues.delete(key)) this.#queues.set(key, queue);",
    by: "",
    tests: ["test/edge/overload/parts.test.ts"],
  },
  {
    promise: "the longest queue makes room for a key that has none",
    file: "src/edge/overload/admission-control.ts",
    text: "const newest = this.#queue.takeOfLongest(own);",
    by: "const newest: Waiting | undefined = undefined;",
    tests: ["test/edge/overload/admission-control.test.ts"],
  },
  {
    promise: "nobody waits longer than may be to be begun",
    file: "src/edge/overload/admission-control.ts",
    text: 'for (const waiting of this.#queue.takeLate(isLate)) this.#refuse(waiting, "queue");',
    by: "void isLate;",
    tests: ["test/edge/overload/admission-control.test.ts"],
  },
  {
    promise: "no completion is begun when there is no memory for it",
    file: "src/edge/overload/admission-control.ts",
    text: "return this.#memoryStep < 3 || this.#underWay.count === 0;",
    by: "return true;",
    tests: ["test/edge/overload/admission-control.test.ts"],
  },
  ...MUTATIONS_OF_THE_SIMULATION,
];

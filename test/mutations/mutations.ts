/** A promise of Parley, and a small change of the source that breaks it. */
export interface Mutation {
  readonly promise: string;
  readonly file: string;
  /** The text to replace. Occurs in the file exactly once. */
  readonly text: string;
  readonly by: string;
}

/**
 * Mutations that `test/faults/simulation.test.ts` has to detect; no other test detects some of them. `npm run mutations`
 * applies one after the other and runs the simulation.
 */
export const MUTATIONS: readonly Mutation[] = [
  {
    promise: "the entry is durable before the end is reported",
    file: "src/core/accounting.ts",
    text: "await written;",
    by: "void written;",
  },
  {
    promise: "a cancelled completion is in the ledger",
    file: "src/core/accounting.ts",
    text: "if (this.#reserved === undefined) return undefined;",
    by: 'if (this.#reserved === undefined || this.#outcome === "cancelled") return undefined;',
  },
  {
    promise: "exactly one entry",
    file: "src/core/accounting.ts",
    text: "const written = entry && ledger.append(entry);",
    by: "const written = entry && (void ledger.append(entry), ledger.append(entry));",
  },
  {
    promise: "an end user's completion is charged to its budget",
    file: "src/limits/limiter.ts",
    text: "budgets: attributed.holds.map(({ subject, period }) => ({ subject, period })),",
    by: "budgets: [],",
  },
  {
    promise: "an end user's budget is held before the request is sent",
    file: "src/limits/limiter.ts",
    text: "const holds = attributed === undefined ? limited.holds : [...limited.holds, ...attributed.holds];",
    by: "const holds = limited.holds;",
  },
  {
    promise: "an end user's request counts for its rate",
    file: "src/limits/limiter.ts",
    text: "const subjects = attributed === undefined ? limited.subjects : [...limited.subjects, ...attributed.subjects];",
    by: "const subjects = limited.subjects;",
  },
  {
    promise: "a key's requests name an end user where the key requires it",
    file: "src/limits/limiter.ts",
    text: "requiresEndUser === true && attribution?.endUser === undefined)",
    by: "requiresEndUser === true && attribution === undefined)",
  },
  {
    promise: "an end user's budget is of the key's own period",
    file: "src/limits/attributed.ts",
    text: "holds.push({ subject, name: endUser, limitMicroUsd, period });",
    by: 'holds.push({ subject, name: endUser, limitMicroUsd, period: "month" });',
  },
  {
    promise: "an estimate does not exceed the reservation",
    file: "src/core/bookings.ts",
    text: "Math.min(Math.ceil(textTokens), most.text) + image",
    by: "Math.ceil(textTokens) + image",
  },
  {
    promise: "a stream's tokens are those of the provider's usage",
    file: "src/core/accounting.ts",
    text: '} else if (event.case === "usage") this.#noteCount(event.value);',
    by: '} else if (event.case === "usage") this.#usage = undefined;',
  },
  {
    promise: "cached tokens are billed once",
    file: "src/core/cost.ts",
    text: "(prompt - cached - written - heard - seen) * prices.input +",
    by: "(prompt - written - heard - seen) * prices.input +",
  },
  {
    promise: "the budget hold uses the most expensive model",
    file: "src/core/cost.ts",
    text: "Math.max(...(costs as",
    by: "Math.min(...(costs as",
  },
  {
    promise: "there is no attempt after the commit",
    file: "src/router/attempts.ts",
    text: "const isFinal = over || committed || !isUpstreamFailure(failure);",
    by: "const isFinal = over || !isUpstreamFailure(failure);",
  },
  {
    promise: "all attempts together have a timeout",
    file: "src/router/attempts.ts",
    text: '    this.#overall.start(primary.timeouts.totalMs, "The completion took longer than this gateway allows.");\n',
    by: "",
  },
  {
    promise: "no timer or listener of a run remains",
    file: "src/router/attempts.ts",
    text: "    this.#overall.close();\n",
    by: "",
  },
  {
    promise: "an attempt without content times out",
    file: "src/router/attempts.ts",
    text: '    limit.start(limitMs, "The upstream provider did not answer in time.");\n',
    by: "",
  },
  {
    promise: "no abort listener of an attempt remains",
    file: "src/router/time-limit.ts",
    text: '    if (!(this.#parent instanceof TimeLimit)) this.#parent.removeEventListener("abort", this.#follow);\n',
    by: "",
  },
  {
    promise: "no more attempts than planned",
    file: "src/router/attempts.ts",
    text: "const PRIMARY_RETRIES = 1;",
    by: "const PRIMARY_RETRIES = 2;",
  },
  {
    promise: "a cancelled probe does not close the circuit breaker",
    file: "src/router/attempts.ts",
    text: "if (over) attempt.permit.abandoned();",
    by: "if (over) attempt.permit.committed();",
  },
  {
    promise: "a cancelled attempt is recorded",
    file: "src/router/attempts.ts",
    text: "    this.#note(attempt.model, failure.code, { running: attempt, failure, upstreamStatus });\n",
    by: "    if (!over) this.#note(attempt.model, failure.code, { running: attempt, failure, upstreamStatus });\n",
  },
  {
    promise: "the first-content timeout ends with the first content",
    file: "src/router/attempts.ts",
    text: "    limit.stop();\n    permit.committed();\n",
    by: "    permit.committed();\n",
  },
  {
    promise: "no chunk is repeated",
    file: "src/router/router.ts",
    text: "if (running.committed) return emit(batch);",
    by: "if (running.committed) { void emit(batch); return emit(batch); }",
  },
  {
    promise: "no chunk is lost",
    file: "src/router/router.ts",
    text: "running.model, run.upstreamMs()), ...batch]",
    by: "running.model, run.upstreamMs()), ...batch.slice(1)]",
  },
  {
    promise: "the serving model is reported",
    file: "src/router/router.ts",
    text: "startChunk(call, running.model,",
    by: "startChunk(call, plan.candidates[0]!,",
  },
  {
    promise: "an empty answer is a failure",
    file: "src/router/attempts.ts",
    text: 'if (this.#plan.mode === "stream")\n      throw new Failure("upstream_protocol", "The upstream model returned no usable output.");',
    by: "",
  },
  {
    promise: "no timer of an attempt remains",
    file: "src/router/router.ts",
    text: "  } finally {\n    attempt.limit.close();\n  }\n}\n",
    by: "  }\n}\n",
  },
  {
    promise: "a stream's run is closed",
    file: "src/router/router.ts",
    text: "    } finally {\n      run.close();\n    }\n  }\n}\n",
    by: "    } finally {\n      void run;\n    }\n  }\n}\n",
  },
  {
    promise: "retries do not multiply the load",
    file: "src/router/retry-budget.ts",
    text: "if (this.#retries >= Math.max(FLOOR, this.#requests * SHARE)) {",
    by: "if (this.#retries === Infinity) {",
  },
  {
    promise: "a model with an open circuit breaker is not called",
    file: "src/router/breaker.ts",
    text: "if (obstacle !== undefined) return this.#refuse(obstacle);",
    by: "",
  },
  {
    promise: "one probe at a time",
    file: "src/router/breaker.ts",
    text: "if (probe === undefined) return true;",
    by: "return true;",
  },
  {
    promise: "a rate limit's retry-after is respected",
    file: "src/router/breaker.ts",
    text: "this.#openFor(this.#recordOf(accountId), failure, failure.retryAfterMs!);",
    by: "this.#openFor(this.#recordOf(accountId), failure, 0);",
  },
  {
    promise: "an outdated look-up of a revoked key is not cached",
    file: "src/access/key-cache.ts",
    text: "        if (current()) keep(",
    by: "        keep(",
  },
  {
    promise: "a revocation without a notification takes effect within five seconds",
    file: "src/access/key-cache.ts",
    text: "const KNOWN_TTL_MS = 4_500;",
    by: "const KNOWN_TTL_MS = 450_000;",
  },
  {
    promise: "a slot is not renewed after its release",
    file: "src/limits/limiter.ts",
    text: "          places.drop(rateDemand.id);\n",
    by: "",
  },
  {
    promise: "rate reservations are released",
    file: "src/limits/limiter.ts",
    text: "          giveBack(rateDemand, usedTokens, 1);\n",
    by: "",
  },
  {
    promise: "a request refused by its budget releases its slot",
    file: "src/limits/limiter.ts",
    text: '        giveBack(rateDemand, 0, reason instanceof Failure && reason.code === "budget_spent" ? 1 : 0);\n',
    by: "",
  },
  {
    promise: "a budget hold is released after a lost response",
    file: "src/limits/limiter.ts",
    text: "        if (extended !== true) budgets.cancel(id).catch(() => undefined);\n",
    by: "",
  },
  {
    promise: "the concurrency limit is not exceeded",
    file: "src/limits/memory.ts",
    text: "if (book.places.size + lent >= places)",
    by: "if (book.places.size + lent > places)",
  },
  {
    promise: "a slot is free after its completion",
    file: "src/limits/memory.ts",
    text: "    book.places.delete(id);\n",
    by: "",
  },
  {
    promise: "the request rate is not exceeded",
    file: "src/limits/memory.ts",
    text: 'book[kind] = take(bucket, kind === "requests" ? UNITS :',
    by: 'book[kind] = take(bucket, kind === "requests" ? UNITS / 2 :',
  },
  {
    promise: "slots of completions in flight are renewed",
    file: "src/limits/limiter.ts",
    text: "else for (const { subject, accountId } of subjects) held.push({ id, subject, accountId });",
    by: "",
  },
  {
    promise: "entries wait while the database is unavailable",
    file: "src/ledger/ledger.ts",
    text: "      this.#noteAway(cause);\n      return true;",
    by: "      this.#noteAway(cause);\n      this.#remove(batch);\n      return true;",
  },
  {
    promise: "waiting entries are written when the database is available again",
    file: "src/ledger/ledger.ts",
    text: "    this.#isRecovered = false;\n    this.#recoverLater();",
    by: "    this.#isRecovered = false;",
  },
  {
    promise: "unwritten entries are in files after close",
    file: "src/ledger/ledger.ts",
    text: "waiting.length === 0 || (await this.#options.files.append(waiting).then(...SUCCESS))",
    by: "true",
  },
  {
    promise: "append resolves when the entry is durable",
    file: "src/ledger/ledger.ts",
    text: "    void this.#write();\n    await written;",
    by: "    void this.#write();\n    void written;",
  },
  {
    promise: "a closed ledger has no timer",
    file: "src/ledger/ledger.ts",
    text: "    this.#closed = true;\n    this.#cancelRetry();\n",
    by: "    this.#closed = true;\n",
  },
  {
    promise: "append does not wait for the database while that is unavailable",
    file: "src/ledger/ledger.ts",
    text: "this.#writing = this.#away ? this.#fileBatch() : this.#writeBatch();",
    by: "this.#writing = this.#writeBatch();",
  },
  {
    promise: "a caller's deadline is enforced",
    file: "src/inbound/calls.ts",
    text: "const timerMs = Math.min(Math.max(deadlineMs, 0), MAX_DEADLINE_MS);",
    by: "const timerMs = MAX_DEADLINE_MS;",
  },
  {
    promise: "an ended call has no timer",
    file: "src/inbound/calls.ts",
    text: "    this.#cancelTimer?.();\n",
    by: "",
  },
  {
    promise: "a cancellation ends the completion",
    file: "src/inbound/calls.ts",
    text: '    this.end(new Failure("cancelled", "The caller left."));\n',
    by: "",
  },
  {
    promise: "a stalled reader is disconnected",
    file: "src/inbound/drain.ts",
    text: "() => call.leave());",
    by: "() => undefined);",
  },
  {
    promise: "no timer of a slow reader remains",
    file: "src/inbound/drain.ts",
    text: "  } finally {\n    cancelStall();\n  }",
    by: "  } finally {\n    void cancelStall;\n  }",
  },
  {
    promise: "a streamed whole answer contains all deltas",
    file: "src/core/answer-builder.ts",
    text: "if (kind.case === content.case) kind.value += content.value;",
    by: "if (kind.case === content.case) kind.value = content.value;",
  },
];

import type { Logger } from "../telemetry/logger.ts";
import type { MetricsSnapshot } from "../telemetry/metrics.ts";
import type { Assignment, ParentCalls, Started, WorkerCalls } from "./calls.ts";
import type { Handlers } from "./channel.ts";
import { type Ending, Member } from "./member.ts";

export interface FleetOptions {
  readonly size: number;
  readonly log: Logger;
  /** The assignment of a worker that starts now. */
  readonly assign: (number: number) => Assignment;
  /** Handlers for the calls of a worker. */
  readonly handlers: (member: Member) => Omit<Handlers<ParentCalls>, "leaving">;
  /** Called when a worker has drained, with its last metrics. */
  readonly onDrained: (member: Member, last: MetricsSnapshot) => void;
  /** Called when a worker's process has ended, for any reason. */
  readonly onGone: (member: Member) => void;
}

interface Place {
  readonly number: number;
  readonly pause: RestartBackoff;
  member: Member | undefined;
  cancelStart: () => void;
}

/** Consecutive failed starts, while no worker serves, after which the fleet gives up. */
const MAX_FAILED_STARTS = 5;
const RELOAD_TIMEOUT_MS = 30_000;

/** A fixed number of worker processes, each replaced when it ends unexpectedly. */
export class Fleet {
  /** Resolves with the reason when the fleet has given up starting workers. */
  readonly failed: Promise<Error>;
  readonly #options: FleetOptions;
  readonly #places: readonly Place[];
  /** All members with a living process, including replaced ones that are still draining. */
  readonly #living = new Set<Member>();
  #fail: (reason: Error) => void = () => undefined;
  #isEnding = false;
  #failedStarts = 0;
  #replaced = 0;
  #ports: Started | undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.failed = new Promise((resolve) => (this.#fail = resolve));
    this.#places = Array.from({ length: options.size }, (_, index) => ({
      number: index + 1,
      pause: new RestartBackoff(),
      member: undefined,
      cancelStart: () => undefined,
    }));
  }

  /** The workers that serve now. */
  get serving(): readonly Member[] {
    return this.#places.flatMap(({ member }) => (member?.serves === undefined ? [] : [member]));
  }

  /** Number of workers that were replaced. */
  get replaced(): number {
    return this.#replaced;
  }

  /** Ports and pages, the same for all workers; undefined before the first one serves. */
  get ports(): Started | undefined {
    return this.#ports;
  }

  /** Starts all workers at once; resolves when all serve. Rejects with the first failure; the caller then calls `end`. */
  async start(): Promise<Started> {
    const started = await Promise.all(this.#places.map((place) => this.#launch(place).start()));
    return (this.#ports = started[0]!);
  }

  /** Calls all workers that serve; omits those that do not answer within `limitMs`. */
  async askAll<Name extends keyof WorkerCalls>(
    call: Name,
    input: WorkerCalls[Name]["input"],
    limitMs: number,
  ): Promise<(readonly [Member, WorkerCalls[Name]["output"]])[]> {
    const asked = this.serving.map(async (member) => [member, await member.ask(call, input, limitMs)] as const);
    const answers = await Promise.allSettled(asked);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
  }

  /** Sends a call to all workers that serve, except `self`. */
  tellOthers<Name extends keyof WorkerCalls>(self: Member, call: Name, input: WorkerCalls[Name]["input"]): void {
    for (const member of this.serving) if (member !== self) member.tell(call, input);
  }

  /**
   * Applies a changed configuration in all workers that serve or are starting: a starting worker was given the earlier one. Rejects
   * with the first error of a worker, or when a worker does not answer in time.
   */
  async reload(next: WorkerCalls["reload"]["input"]): Promise<void> {
    const members = this.#places.flatMap(({ member }) => member ?? []);
    await Promise.all(
      members.map((member) =>
        member.ask("reload", next, RELOAD_TIMEOUT_MS).catch((cause: unknown) => {
          // A worker that has ended, or could not start, is replaced; its successor starts with the new configuration.
          if (member.serves === undefined || !this.#living.has(member)) return;
          throw new Error(`${member.name}: ${(cause as Error).message}`, { cause });
        }),
      ),
    );
  }

  /** Drains all workers; resolves when all processes have ended. Kills them after `limitMs`. */
  async drain(limitMs: number): Promise<void> {
    this.#stopReplacing();
    const timer = setTimeout(() => {
      for (const { name, pid } of this.#living)
        this.#options.log.error({ worker: name, pid }, "the worker did not end in time and is killed");
      this.#killAll();
    }, limitMs);
    await Promise.all(
      [...this.#living].map(async (member) => {
        if (member.serves === undefined) member.kill();
        else {
          const last = await member.ask("drain", null).catch(() => undefined);
          if (last !== undefined) {
            this.#options.onDrained(member, last);
            member.release();
          }
        }
        await member.ended;
      }),
    );
    clearTimeout(timer);
  }

  /** Ends calls in flight at once. */
  abort(): void {
    for (const member of this.#living) member.tell("abort", null);
  }

  /** Kills all remaining processes. */
  async end(): Promise<void> {
    this.#stopReplacing();
    const endings = [...this.#living].map(({ ended }) => ended);
    this.#killAll();
    await Promise.all(endings);
  }

  #stopReplacing(): void {
    this.#isEnding = true;
    for (const { cancelStart } of this.#places) cancelStart();
  }

  #killAll(): void {
    for (const member of this.#living) member.kill();
  }

  #launch(place: Place): Member {
    const { assign, handlers } = this.#options;
    const member = new Member(assign(place.number), (self) => ({
      ...handlers(self),
      leaving: () => {
        this.#replace(place, self);
        return null;
      },
    }));
    place.member = member;
    this.#living.add(member);
    void member.ended.then((ending) => this.#onEnd(place, member, ending));
    return member;
  }

  #onEnd(place: Place, member: Member, ending: Ending): void {
    this.#living.delete(member);
    this.#options.onGone(member);
    const { log } = this.#options;
    const isClean = ending.code === 0 && this.#isEnding;
    if (!isClean) log.error({ of: member.assignment.number, pid: member.pid, ...ending }, "a worker has ended");
    this.#replace(place, member);
  }

  /** Starts a successor in this place, unless `member` has one already. */
  #replace(place: Place, member: Member): void {
    if (place.member !== member) return;
    place.member = undefined;
    if (this.#isEnding || this.#ports === undefined) return;
    this.#replaced += 1;
    this.#plan(place, place.pause.next(performance.now() - member.startedAtMs));
  }

  #plan(place: Place, pauseMs: number): void {
    this.#options.log.info({ of: place.number, pause_ms: pauseMs }, "another worker takes its place");
    const timer = setTimeout(() => void this.#succeed(place), pauseMs);
    place.cancelStart = () => clearTimeout(timer);
  }

  async #succeed(place: Place): Promise<void> {
    const { log } = this.#options;
    let member: Member;
    try {
      member = this.#launch(place);
    } catch (error) {
      // The system has no memory for another process.
      this.#noteFailedStart(place, error instanceof Error ? error.message : String(error));
      if (!this.#isEnding) this.#plan(place, place.pause.next(0));
      return;
    }
    try {
      const started = await member.start();
      this.#failedStarts = 0;
      if (!listensLike(started, this.#ports!)) throw new Error("it listens on other ports than the first worker");
      log.info({ of: place.number, pid: member.pid }, "the replacement worker is ready");
    } catch (error) {
      member.serves = undefined;
      member.kill();
      this.#noteFailedStart(place, error instanceof Error ? error.message : String(error));
    }
  }

  #noteFailedStart({ number }: Place, reason: string): void {
    if (this.#isEnding) return;
    this.#options.log.error({ of: number, reason }, "the worker failed to start");
    this.#failedStarts += 1;
    if (this.serving.length === 0 && this.#failedStarts >= MAX_FAILED_STARTS)
      this.#fail(new Error(`no worker can be started; last error: ${reason}`));
  }
}

function listensLike(one: Started, other: Started): boolean {
  return one.httpPort === other.httpPort && one.grpcPort === other.grpcPort;
}

/** Lifetime of a worker after which the restart pause begins anew. */
const STEADY_MS = 60_000;
const FIRST_MS = 200;
const MAX_MS = 30_000;

/** Restart backoff of one place: none at first, then doubling from `FIRST_MS` to `MAX_MS` while workers end early. */
export class RestartBackoff {
  #youngDeaths = 0;

  /** Returns the pause after a worker that lived `livedMs`. */
  next(livedMs: number): number {
    if (livedMs >= STEADY_MS) this.#youngDeaths = 0;
    const earlier = this.#youngDeaths++;
    return earlier === 0 ? 0 : Math.min(FIRST_MS * 2 ** (earlier - 1), MAX_MS);
  }
}

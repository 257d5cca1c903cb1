import type { Logger } from "../telemetry/logger.ts";
import type { Assignment, InForce, ParentCalls, Started, WorkerCalls } from "./calls.ts";
import type { Handlers } from "./channel.ts";
import { type Ending, Member } from "./member.ts";

export interface FleetOptions {
  readonly size: number;
  readonly log: Logger;
  /** What a worker that begins now is to be. */
  readonly assign: (number: number) => Assignment;
  /** Answers what a worker asks. */
  readonly handlers: (member: Member) => Omit<Handlers<ParentCalls>, "leaving">;
  /** A worker is gone, for whatever reason. */
  readonly onGone: (member: Member) => void;
}

interface Place {
  readonly number: number;
  readonly pause: GrowingPause;
  member: Member | undefined;
  cancelStart: () => void;
}

/** So many workers in a row that did not come to serve, while none serves, and it is given up. */
const MAX_FAILED_STARTS = 5;

/** Some worker processes, each of which is replaced when it ends unasked. */
export class Fleet {
  /** Resolves with the reason when no worker comes up any more. */
  readonly failed: Promise<Error>;
  readonly #options: FleetOptions;
  readonly #places: readonly Place[];
  /** All whose processes live; also those that have been replaced and let their last calls end. */
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
      pause: new GrowingPause(),
      member: undefined,
      cancelStart: () => undefined,
    }));
  }

  /** The workers that serve. */
  get serving(): readonly Member[] {
    return this.#places.flatMap(({ member }) => (member?.serves === undefined ? [] : [member]));
  }

  /** How many have been replaced. */
  get replaced(): number {
    return this.#replaced;
  }

  /** What all of them are; undefined before the first one serves. */
  get ports(): Started | undefined {
    return this.#ports;
  }

  /** Starts all at once, and answers when all serve. Rejects with what keeps one from that, and leaves it to `end` to end them. */
  async start(): Promise<Started> {
    const started = await Promise.all(this.#places.map((place) => this.#launch(place).start()));
    return (this.#ports = started[0]!);
  }

  /** Asks all that serve, and leaves out those that do not answer in time. */
  async askAll<Name extends keyof WorkerCalls>(
    call: Name,
    input: WorkerCalls[Name]["input"],
    limitMs: number,
  ): Promise<(readonly [Member, WorkerCalls[Name]["output"]])[]> {
    const asked = this.serving.map(async (member) => [member, await member.ask(call, input, limitMs)] as const);
    const answers = await Promise.allSettled(asked);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
  }

  /** Tells all that serve but one. */
  tellOthers<Name extends keyof WorkerCalls>(self: Member, call: Name, input: WorkerCalls[Name]["input"]): void {
    for (const member of this.serving) if (member !== self) member.tell(call, input);
  }

  /** Takes over a changed configuration in all that live. Rejects with what one says against it. */
  async reload(next: InForce): Promise<void> {
    await Promise.all(
      this.serving.map((member) =>
        member.ask("reload", next).catch((reason: unknown) => {
          // One that is gone has a successor, which begins with the new one.
          if (this.#living.has(member)) throw reason;
        }),
      ),
    );
  }

  /** Lets all end what they have under way; answers when all processes have ended, after `limitMs` by force. */
  async drain(limitMs: number): Promise<void> {
    this.#stopReplacing();
    const timer = setTimeout(() => {
      for (const { name, pid } of this.#living)
        this.#options.log.error({ worker: name, pid }, "a worker does not end; it is killed");
      this.#killAll();
    }, limitMs);
    await Promise.all(
      [...this.#living].map(async (member) => {
        if (member.serves === undefined) member.kill();
        else
          await member.ask("drain", null).then(
            () => member.release(),
            () => undefined,
          );
        await member.ended;
      }),
    );
    clearTimeout(timer);
  }

  /** Ends calls under way at once. */
  abort(): void {
    for (const member of this.#living) member.tell("abort", null);
  }

  /** Ends what is left by force. */
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

  /** Starts the next one at this place, unless that has been done. */
  #replace(place: Place, member: Member): void {
    if (place.member !== member) return;
    place.member = undefined;
    if (this.#isEnding || this.#ports === undefined) return;
    this.#replaced += 1;
    const pauseMs = place.pause.next(performance.now() - member.startedAtMs);
    const { log } = this.#options;
    log.info({ of: place.number, pause_ms: pauseMs }, "another worker takes its place");
    const timer = setTimeout(() => void this.#succeed(place), pauseMs);
    place.cancelStart = () => clearTimeout(timer);
  }

  async #succeed(place: Place): Promise<void> {
    const { log } = this.#options;
    const member = this.#launch(place);
    try {
      const started = await member.start();
      this.#failedStarts = 0;
      if (!listensLike(started, this.#ports!)) throw new Error("it listens elsewhere");
      log.info({ of: place.number, pid: member.pid }, "a worker serves");
    } catch (error) {
      member.serves = undefined;
      member.kill();
      this.#noteFailedStart(place, error instanceof Error ? error.message : String(error));
    }
  }

  #noteFailedStart({ number }: Place, reason: string): void {
    if (this.#isEnding) return;
    this.#options.log.error({ of: number, reason }, "a worker does not come to serve");
    this.#failedStarts += 1;
    if (this.serving.length === 0 && this.#failedStarts >= MAX_FAILED_STARTS)
      this.#fail(new Error(`no worker comes to serve any more; the last one: ${reason}`));
  }
}

function listensLike(one: Started, other: Started): boolean {
  return one.httpPort === other.httpPort && one.grpcPort === other.grpcPort;
}

/** A worker that has lived so long has proved itself. */
const STEADY_MS = 60_000;
const FIRST_MS = 200;
const MAX_MS = 30_000;

/** How long a worker's successor waits: not at all, and longer each time when one after the other dies young. */
export class GrowingPause {
  #youngDeaths = 0;

  /** After a life of so many milliseconds. */
  next(livedMs: number): number {
    if (livedMs >= STEADY_MS) this.#youngDeaths = 0;
    const earlier = this.#youngDeaths++;
    return earlier === 0 ? 0 : Math.min(FIRST_MS * 2 ** (earlier - 1), MAX_MS);
  }
}

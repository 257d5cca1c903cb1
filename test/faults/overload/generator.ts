// Open-loop load generator: sends requests at fixed times, independent of earlier responses. A separate process, so
// that its processor time is not the gateway's. The argument is the target; each message is a phase to run.
import { connect, type Socket } from "node:net";
import { AnswerReader, type ReadAnswer } from "../../../bench/load/answer-reader.ts";

/** Target of the requests, and marks of a complete answer. */
export interface Target {
  readonly port: number;
  readonly path: string;
  readonly body: string;
  /** Texts in a complete answer. */
  readonly marks: number;
}

/** Keys and rate of one stream of requests. */
interface Stream {
  readonly name: string;
  /** API keys, used in turn. */
  readonly keys: readonly string[];
  readonly perSecond: number;
}

/** One phase. */
export interface Phase {
  readonly seconds: number;
  readonly streams: readonly Stream[];
  /** Timeout of callers; later answers do not count. */
  readonly patienceMs: number;
  /** Warm-up in seconds: earlier answers, and those after the last request, do not count. */
  readonly settleSeconds: number;
  /** Number of connections opened in advance: Node accepts one per event-loop turn, so new ones are slow. */
  readonly connections: number;
}

/** Counted outcomes of one stream of requests. */
export interface Outcome {
  answered: number;
  /** Durations of complete answers within the timeout. */
  readonly servedMs: number[];
  /** Durations of responses with status 503 and `retry-after`. */
  readonly refusedMs: number[];
  late: number;
  /** Counts of all other outcomes. */
  readonly wrong: Record<string, number>;
}

/** Interval at which due requests are sent. */
const TICK_MS = 2;

interface Connection {
  readonly socket: Socket;
  take: (answer: ReadAnswer | Error) => void;
}

const target = JSON.parse(process.argv[2]!) as Target;
const idle: Connection[] = [];

process.on("message", (phase: Phase) => void run(phase).then((outcomes) => process.send?.(outcomes)));
process.once("disconnect", () => process.exit(0));
process.send?.({});

async function run(phase: Phase): Promise<Record<string, Outcome>> {
  await connectAll(phase.connections);
  const outcomes = Object.fromEntries(
    phase.streams.map(({ name }): [string, Outcome] => [
      name,
      { answered: 0, servedMs: [], refusedMs: [], late: 0, wrong: {} },
    ]),
  );
  const pending = new Set<Promise<undefined>>();
  const startMs = performance.now();
  const made = phase.streams.map(() => 0);
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = Math.min(performance.now() - startMs, phase.seconds * 1000);
      phase.streams.forEach(({ name, keys, perSecond }, index) => {
        for (; made[index]! < (elapsedMs / 1000) * perSecond; made[index]!++) {
          const dueMs = startMs + (made[index]! * 1000) / perSecond;
          const asked = ask(keys[made[index]! % keys.length]!).then((answer) => {
            const nowMs = performance.now();
            const second = (nowMs - startMs) / 1000;
            const counts = second >= phase.settleSeconds && second <= phase.seconds;
            if (counts) note(outcomes[name]!, answer, { tookMs: nowMs - dueMs, phase });
            return undefined;
          });
          pending.add(asked);
          void asked.then(() => pending.delete(asked));
        }
      });
      if (elapsedMs < phase.seconds * 1000) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
  await Promise.all(pending);
  return outcomes;
}

function note(
  outcome: Outcome,
  answer: ReadAnswer | Error,
  { tookMs, phase: { patienceMs } }: { readonly tookMs: number; readonly phase: Phase },
): void {
  outcome.answered += 1;
  const wrong = (what: string): void => void (outcome.wrong[what] = (outcome.wrong[what] ?? 0) + 1);
  if (answer instanceof Error) wrong(answer.message);
  else if (answer.status === 503) outcome.refusedMs.push(tookMs);
  else if (answer.status !== 200) wrong(`status ${answer.status}`);
  else if (answer.marks !== target.marks || !answer.tail.trimEnd().endsWith("data: [DONE]"))
    wrong("a part of an answer");
  else if (tookMs > patienceMs) outcome.late += 1;
  else outcome.servedMs.push(tookMs);
}

/** Opens connections until this many are idle; each has had one response. */
async function connectAll(count: number): Promise<void> {
  const bytes = Buffer.from(`GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:${target.port}\r\n\r\n`);
  const missing = Math.max(0, count - idle.length);
  const answers = Array.from({ length: missing }, () => send(open(), bytes));
  for (const answer of await Promise.all(answers)) if (answer instanceof Error) throw answer;
}

/** Sends one request on an idle connection or a new one. */
function ask(key: string): Promise<ReadAnswer | Error> {
  return send(idle.pop() ?? open(), requestOf(key));
}

function send(connection: Connection, bytes: Buffer): Promise<ReadAnswer | Error> {
  return new Promise((resolve) => {
    connection.take = (answer) => {
      if (!(answer instanceof Error)) idle.push(connection);
      connection.take = () => undefined;
      resolve(answer);
    };
    connection.socket.write(bytes);
  });
}

const requests = new Map<string, Buffer>();

function requestOf(key: string): Buffer {
  let bytes = requests.get(key);
  if (bytes === undefined) {
    const { path, port, body } = target;
    bytes = Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    requests.set(key, bytes);
  }
  return bytes;
}

function open(): Connection {
  const socket = connect({ port: target.port, host: "127.0.0.1", noDelay: true });
  const connection: Connection = { socket, take: () => undefined };
  const reader = new AnswerReader();
  const lose = (error: Error): void => {
    socket.destroy();
    const at = idle.indexOf(connection);
    if (at >= 0) idle.splice(at, 1);
    connection.take(error);
  };
  socket.on("data", (bytes: Buffer) => {
    try {
      const answer = reader.push(bytes);
      if (answer !== undefined) connection.take(answer);
    } catch (error) {
      lose(error instanceof Error ? error : new Error(String(error)));
    }
  });
  socket.on("error", lose).on("close", () => lose(new Error("the connection was closed")));
  return connection;
}

// The load generator: one process per contestant and load. Its argument has the target and load; each message starts a
// slice, and is answered with the slice's result.
import { endWithParent } from "../child.ts";
import { type Assignment, emptyTally, type Tally } from "./caller.ts";
import { createGrpcCaller } from "./grpc-caller.ts";
import { createHttpCaller } from "./http-caller.ts";

/** Starts one slice. */
export interface SliceRequest {
  readonly seconds: number;
}

/** Result of one slice. */
export interface SliceReply extends Tally {
  /** From the first request to the last byte. */
  readonly elapsedMs: number;
}

const assignment = JSON.parse(process.argv[2]!) as Assignment;
const { load } = assignment;
let tally = emptyTally();
const callers = Array.from({ length: load.connections }, () =>
  load.transport === "http" ? createHttpCaller(assignment, () => tally) : createGrpcCaller(assignment, () => tally),
);

process.on("message", ({ seconds }: SliceRequest) => {
  void runSlice(seconds).then((reply) => process.send?.(reply));
});
process.send?.({});
endWithParent();

async function runSlice(seconds: number): Promise<SliceReply> {
  tally = emptyTally();
  const startedMs = performance.now();
  const endMs = startedMs + seconds * 1000;
  await Promise.all(
    callers.map((caller) => {
      let left = load.callsPerConnection;
      return caller.run(load.repeat === "once" ? () => left-- > 0 : () => performance.now() < endMs);
    }),
  );
  return { ...tally, elapsedMs: performance.now() - startedMs };
}

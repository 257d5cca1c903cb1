import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callers } from "./fuzz/callers.ts";
import { readCorpus } from "./fuzz/corpus.ts";
import { Findings } from "./fuzz/findings.ts";
import { GrpcCaller, type GrpcOutcome, sendConnection } from "./fuzz/grpc-caller.ts";
import { damagedConnection, grpcInput, readInput, writeInput } from "./fuzz/grpc-inputs.ts";
import { noteLog, type ProductUnderTest, startProductUnderTest } from "./fuzz/product-under-test.ts";
import { randomOf } from "./fuzz/random.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

const COUNT = scale(20_000, 300_000);
const CALLERS = 32;
/** The log is searched after this many calls. */
const LOG_EVERY = 500;
/** Percentage of inputs that are connections with damaged frames; the others are calls on persistent sessions. */
const DAMAGED_PERCENT = 10;

let tested: ProductUnderTest;

beforeAll(async () => {
  tested = await startProductUnderTest();
});

afterAll(() => tested.stop());

describe("calls over gRPC", () => {
  it("of the corpus end as expected", async () => {
    const findings = new Findings("grpc");
    const { grpcPort, firstKey } = tested.product;
    const caller = new GrpcCaller(grpcPort);
    const files = readCorpus("grpc");
    for (const { name, bytes } of files) {
      const { ended, flaw } = await caller.send(readInput(bytes, firstKey));
      const expected = name.split(".")[0]!.replaceAll("-", " ");
      findings.note({ name, bytes }, ended.startsWith(expected) ? flaw : `ended with ${ended}`);
    }
    caller.close();
    noteLog(tested, findings);
    findings.conclude(`statuses outside the failure table, of ${files.length} calls in the corpus`);
  });

  it(
    "are served or refused by the failure table, and leave nothing behind",
    async () => {
      const findings = new Findings("grpc");
      const { grpcPort, firstKey } = tested.product;
      const endings = new Map<string, number>();
      const before = await tested.holdings();
      const open: GrpcCaller[] = [];
      await callers({ count: COUNT, atOnce: CALLERS }, () => {
        const caller = new GrpcCaller(grpcPort);
        open.push(caller);
        return async (index) => {
          const random = randomOf("grpc", index);
          let outcome: GrpcOutcome;
          let bytes: Buffer;
          if (random.percent(DAMAGED_PERCENT)) {
            bytes = damagedConnection(firstKey, random);
            outcome = await sendConnection(grpcPort, bytes);
          } else {
            const input = grpcInput(firstKey, random);
            outcome = await caller.send(input);
            bytes = writeInput(input, firstKey);
          }
          endings.set(outcome.ended, (endings.get(outcome.ended) ?? 0) + 1);
          findings.note({ name: index, bytes }, outcome.flaw);
          if (index % LOG_EVERY === 0) noteLog(tested, findings);
          findings.progress(index);
        };
      });
      noteLog(tested, findings);
      figure({ name: "fuzzed gRPC calls over sockets", value: COUNT, unit: "", atLeast: COUNT });
      console.log([...endings].map(([ended, count]) => `${count} × ${ended}`).join(", "));
      findings.conclude("fuzzed gRPC calls: crashes, statuses outside the failure table, secrets, lost answers");
      // Served as well as refused, or the inputs test little.
      expect(endings.get("0 OK")).toBeGreaterThan(COUNT / 20);
      expect(endings.get("3 INVALID_REQUEST")).toBeGreaterThan(COUNT / 20);
      for (const caller of open) caller.close();
      expect(await tested.leakSince(before)).toBeUndefined();
    },
    timeLimit(600, 14_400),
  );
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callers } from "./fuzz/callers.ts";
import { readCorpus } from "./fuzz/corpus.ts";
import { Findings } from "./fuzz/findings.ts";
import { HttpCaller } from "./fuzz/http-caller.ts";
import { httpInput, KEY } from "./fuzz/http-inputs.ts";
import { noteLog, type ProductUnderTest, startProductUnderTest } from "./fuzz/product-under-test.ts";
import { randomOf } from "./fuzz/random.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

const COUNT = scale(20_000, 1_000_000);
const CALLERS = 32;
/** The log is searched after this many requests. */
const LOG_EVERY = 500;

let tested: ProductUnderTest;

beforeAll(async () => {
  tested = await startProductUnderTest();
});

afterAll(() => tested.stop());

describe("requests over HTTP", () => {
  it("of the corpus are answered as expected", async () => {
    const findings = new Findings("http");
    const { httpPort, firstKey } = tested.product;
    const caller = new HttpCaller(httpPort);
    const files = readCorpus("http");
    for (const { name, bytes } of files) {
      const request = Buffer.from(bytes.toString("latin1").replaceAll(KEY, firstKey), "latin1");
      const { status, flaw } = await caller.send({ bytes: request, isWellFramed: true });
      const expected = name.split(".")[0];
      findings.note({ name, bytes }, String(status) === expected ? flaw : `answered with ${status}`);
    }
    caller.close();
    noteLog(tested, findings);
    findings.conclude(`answers outside the failure table, of ${files.length} requests in the corpus`);
  });

  it(
    "are served or refused by the failure table, and leave nothing behind",
    async () => {
      const findings = new Findings("http");
      const { httpPort, firstKey } = tested.product;
      const statuses = new Map<number, number>();
      const before = await tested.holdings();
      const open: HttpCaller[] = [];
      await callers({ count: COUNT, atOnce: CALLERS }, () => {
        const caller = new HttpCaller(httpPort);
        open.push(caller);
        return async (index) => {
          const input = httpInput(firstKey, randomOf("http", index));
          const { status, flaw } = await caller.send(input);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          findings.note({ name: index, bytes: input.bytes }, flaw);
          if (index % LOG_EVERY === 0) noteLog(tested, findings);
          findings.progress(index);
        };
      });
      noteLog(tested, findings);
      figure({ name: "fuzzed HTTP requests over sockets", value: COUNT, unit: "", atLeast: COUNT });
      console.log(
        `answered: ${[...statuses]
          .toSorted(([one], [other]) => one - other)
          .map(([status, count]) => `${count} with ${status}`)
          .join(", ")}`,
      );
      findings.conclude("fuzzed HTTP requests: crashes, answers outside the failure table, secrets, lost answers");
      // Served as well as refused, or the inputs test little.
      expect(statuses.get(200)).toBeGreaterThan(COUNT / 20);
      expect(statuses.get(400)).toBeGreaterThan(COUNT / 20);
      for (const caller of open) caller.close();
      expect(await tested.leakSince(before)).toBeUndefined();
    },
    timeLimit(600, 14_400),
  );
});

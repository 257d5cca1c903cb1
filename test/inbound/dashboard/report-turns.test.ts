import { Code } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { totalOf, type UsageStore } from "../../../src/ledger/usage-store.ts";
import { ReportTurns } from "../../../src/inbound/dashboard/report-turns.ts";
import { TimeLimitError } from "../../../src/store/store-error.ts";
import { errorOf } from "./errors.ts";
import { startConsole } from "./set-up.ts";

const never = new AbortController().signal;

describe("reports", () => {
  it.each([
    ["sqlite", ["a1"]],
    ["postgres", ["a1", "b1", "c1"]],
  ] as const)("on %s run as many at a time as it serves, one of an account", async (database, atOnce) => {
    const turns = new ReportTurns(database);
    const began: string[] = [];
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const reports = ["a1", "a2", "a3", "b1", "c1"].map((name) =>
      turns.run(name[0]!, never, () => {
        began.push(name);
        return ended;
      }),
    );
    await expect.poll(() => began).toEqual(atOnce);
    end();
    await Promise.all(reports);
    expect(began).toHaveLength(5);
    expect(began.at(-1)).toBe("a3");
  });

  it("that take the database too long fail with what to choose, and the next one begins", async () => {
    let isTooLong = true;
    const usage: Partial<UsageStore> = {
      async summarize() {
        if (isTooLong) throw new TimeLimitError("A statement took too long.");
        return { rows: [], total: totalOf([]), isChosenByDay: false, cutSinceMs: undefined };
      },
    };
    const site = await startConsole({ signUp: "open", usage: usage as UsageStore });
    onTestFinished(() => site.close());
    const ada = await site.signedUp("ada");
    const { code, rawMessage } = await errorOf(ada.usage.summarize({}));
    expect(code).toBe(Code.DeadlineExceeded);
    expect(rawMessage).toBe("This report takes the database too long. Choose a shorter time, an account or a key.");
    isTooLong = false;
    expect(await ada.usage.summarize({})).toBeDefined();
  });
});

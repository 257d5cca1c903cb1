// Program: makes the given number of demands of 100 on the budget of 5000 of an end user, and on those of its key and account, and prints how many were admitted. Demands with an
// even index are settled in the ledger at once, at the held amount.
import type { DatabaseLocation } from "../../src/store/database.ts";
import { openStore } from "../../src/store/store.ts";
import { demand } from "./contracts/demands.ts";
import { entry } from "./contracts/entries.ts";

const [location = "{}", count = "0"] = process.argv.slice(2);
const { dataDir, databaseUrl } = JSON.parse(location) as DatabaseLocation;
const store = await openStore({ dataDir, databaseUrl });
process.stdout.write("ready\n");
await new Promise((resolve) => process.stdin.once("data", resolve));
process.stdin.destroy();
const endUser = { subject: "end_user:race:u", period: "day" } as const;
const holds = [
  ...["key:race", "account:race"].map((subject) => ({ subject, limitMicroUsd: 6000 })),
  { ...endUser, limitMicroUsd: 5000 },
];
let admitted = 0;
await Promise.all(
  Array.from({ length: Number(count) }, async (_, index) => {
    const asked = demand({ holds: index % 3 === 0 ? holds : holds.toReversed() });
    const decision = await store.budgets.hold(asked);
    if (!decision.admitted) return;
    admitted++;
    const { id: completionId, amountMicroUsd: costMicroUsd } = asked;
    const settled = {
      completionId,
      keyId: "race",
      accountId: "race",
      startedAtMs: Date.now(),
      costMicroUsd,
      budgets: [endUser],
    };
    if (index % 2 === 0) await store.ledger.insert([entry(settled)]);
  }),
);
process.stdout.write(`${admitted}\n`);
await store.close();

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ConsoleCaller } from "../faults/support/console.ts";
import { type Product, startProduct } from "../support/product.ts";

const run = promisify(execFile);
const PAGE = readFileSync(join(import.meta.dirname, "../../docs/operations/administration-keys.md"), "utf8");

let product: Product;
beforeAll(async () => {
  product = await startProduct({ config: { sign_up: "open", simulator: { enabled: true } } });
});
afterAll(() => product?.stop());

it("docs/operations/administration-keys.md has commands for curl that make a team and a key that completes", async () => {
  const owner = new ConsoleCaller(product);
  await owner.signUp("ada@example.com");
  const permissions = ["teams.write", "members.read", "keys.read", "keys.write"];
  const { secret } = (await owner.call("AdminKeyService/Create", { name: "terraform", permissions })) as {
    secret: string;
  };
  const [makeTeam, makeKey] = [...PAGE.matchAll(/```sh\n([^`]*curl [^`]*)```/g)].map(([, code]) =>
    code!.replaceAll("https://parley.example.com", product.url).replaceAll("curl ", "curl -sS --fail-with-body "),
  );
  const shell = async (code: string) =>
    JSON.parse(
      (await run("bash", ["-ec", code], { env: { PATH: process.env["PATH"], PARLEY_ADMIN_KEY: secret } })).stdout,
    );
  const { team } = (await shell(makeTeam!.replace("sk_parley_admin_…", secret))) as {
    team: { account: { id: string; limits: object } };
  };
  expect(team.account).toMatchObject({ name: "Search", limits: { monthlyBudgetMicroUsd: "50000000" } });
  const made = (await shell(makeKey!.replace("acct_…", team.account.id))) as { secret: string; key: object };
  expect(made.key).toMatchObject({ name: "indexer", accountId: team.account.id });
  const models = await fetch(`${product.url}/v1/models`, { headers: { authorization: `Bearer ${made.secret}` } });
  expect(models.status).toBe(200);
});

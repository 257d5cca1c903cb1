import { rmSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { ConsoleCaller, PASSWORD } from "../faults/support/console.ts";
import { makeHome, type Product, type ProductOptions, runProduct, startProduct } from "../support/product.ts";

const undo: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function open(options: ProductOptions): Promise<Product> {
  const product = await startProduct(options);
  undo.push(() => product.stop());
  return product;
}

/** Six people at the same moment, and what becomes of them. */
async function signUps(product: Product, more: object = {}): Promise<string[]> {
  const answers = Array.from({ length: 6 }, async (_, index) => {
    const message = { email: `person${index}@example.com`, password: PASSWORD, ...more };
    const { status, body } = await new ConsoleCaller(product).ask("SessionService/SignUp", message);
    const { session } = body as { session?: { account: { role: string } } };
    return `${status} ${session?.account.role ?? ""}`.trim();
  });
  return (await Promise.all(answers)).toSorted();
}

const stateOf = (product: Product) => new ConsoleCaller(product).call("SessionService/GetSession");
const tokenIn = (text: string): string | undefined => /\/sign-up#setup=([\w-]{43})$/m.exec(text)?.[1];

describe("the first owner", () => {
  it("of a reachable installation needs the setup token of the start, and only one of six attempts succeeds", async () => {
    const config = { http: { listen: "127.0.0.1:0", public_url: "https://parley.example.com" }, workers: 2 };
    const product = await open({ config });
    expect(await stateOf(product)).toMatchObject({ needsOwner: true, needsSetupToken: true });
    expect(await signUps(product)).toEqual(Array.from({ length: 6 }, () => "403"));
    expect(product.output.stdout).toContain("https://parley.example.com/sign-up#setup=");
    const setupToken = tokenIn(product.output.stdout);
    expect(product.output.stderr).not.toContain(setupToken);
    const made = await signUps(product, { setupToken });
    expect(made).toEqual(["200 ACCOUNT_ROLE_OWNER", ...Array.from({ length: 5 }, () => "403")]);
    const after = await stateOf(product);
    expect([after["needsOwner"], after["needsSetupToken"]]).toEqual([undefined, undefined]);
  });

  it("cannot be created in the dashboard with closed sign-up", async () => {
    const product = await open({ config: { sign_up: "closed" } });
    expect(product.output.stdout).toContain("npx parley accounts create --role owner");
    expect(await signUps(product)).toEqual(Array.from({ length: 6 }, () => "403"));
    expect(await stateOf(product)).toMatchObject({ needsOwner: true });
  });

  it("needs no token on loopback", async () => {
    const product = await open({});
    expect(tokenIn(product.output.stdout)).toBeUndefined();
    expect((await stateOf(product))["needsSetupToken"]).toBeUndefined();
    for (const header of ["x-forwarded-for", "forwarded", "x-real-ip", "via"]) {
      const forwarded = await fetch(`${product.url}/parley.console.v1.SessionService/SignUp`, {
        method: "POST",
        headers: { "content-type": "application/json", [header]: "for=192.0.2.1" },
        body: JSON.stringify({ email: "eve@example.com", password: PASSWORD }),
      });
      expect([header, forwarded.status]).toEqual([header, 403]);
    }
    // Once, however many there are.
    await expect.poll(() => product.output.stderr.split("requests carry x-forwarded-for").length).toBe(2);
    expect((await signUps(product))[0]).toBe("200 ACCOUNT_ROLE_OWNER");
  });

  it("can use the token of an earlier process on the same data; none is printed once an owner exists", async () => {
    const config = { http: { listen: "127.0.0.1:0", trusted_proxies: ["10.0.0.0/8"] } };
    const home = makeHome();
    undo.push(() => rmSync(home, { recursive: true, force: true }));
    const one = await open({ home, config });
    one.signal("SIGTERM");
    await one.ending;
    const setupToken = tokenIn(one.output.stdout);
    const other = await open({ home, config });
    expect(tokenIn(other.output.stdout)).not.toBe(setupToken);
    expect((await signUps(other, { setupToken }))[0]).toBe("200 ACCOUNT_ROLE_OWNER");
    other.signal("SIGTERM");
    await other.ending;
    const again = runProduct(["serve"], { home });
    undo.push(() => void again.child.kill("SIGKILL"));
    await expect.poll(() => again.output.stdout, { timeout: 20_000 }).toContain("Keys are made with");
    expect(tokenIn(again.output.stdout)).toBeUndefined();
  });
});

import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { makeHome, type Product, type ProductOptions, runProduct, startProduct } from "../support/product.ts";

async function start(options: ProductOptions = {}): Promise<Product> {
  const product = await startProduct(options);
  onTestFinished(() => product.stop());
  return product;
}

it.each([1, 2])("one process with workers: %s serves a data directory, beside which commands work", async (workers) => {
  const home = makeHome();
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const first = await start({ home, config: { workers } });
  const second = runProduct(["serve"], { home });
  expect(await second.ending).toEqual({ code: 1, signal: null });
  expect(second.output.stderr).toContain(
    `process ${first.pid} already serves the data directory ${join(home, "data")}: end it first`,
  );
  const created = runProduct(["keys", "create", "--name", "beside"], { home });
  expect(await created.ending).toEqual({ code: 0, signal: null });
  // However it ends.
  first.signal("SIGKILL");
  await first.ending;
  await start({ home, config: { workers } });
});

import { expect, it } from "vitest";
import { parseConfig } from "../../src/config/parse.ts";
import { requireAddresses } from "../../src/gateway/starting.ts";

it("an address that this machine does not have is named with its setting and the reason", async () => {
  const text = "{ http: { listen: '192.0.2.1:8080', allow_public: true }, operations: { listen: '127.0.0.1:0' } }";
  const config = parseConfig({ file: "parley.yaml", text, env: {} });
  await expect(requireAddresses(config, "front")).rejects.toThrow(
    "http.listen: cannot use 192.0.2.1:8080: this machine has no such address",
  );
});

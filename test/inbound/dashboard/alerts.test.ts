import { rmSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { expect, it, onTestFinished } from "vitest";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { parseConfig } from "../../../src/config/parse.ts";
import { credentialCipherOf } from "../../../src/gateway/account-credentials.ts";
import { alertPortsOf } from "../../../src/gateway/alerts.ts";
import { openStore } from "../../../src/store/store.ts";
import { findingOf } from "../../store/contracts/alert-store.ts";
import { makeDataDir } from "../../support/data-dir.ts";
import { errorOf } from "./errors.ts";
import { startConsole } from "./set-up.ts";

it("an alert of the installation is acknowledged by those only who may do so in all accounts", async () => {
  const dataDir = await makeDataDir("parley-alerts-");
  const store = await openStore({ dataDir, databaseUrl: undefined });
  const credentials = credentialCipherOf({ accountCredentials: {}, dataDir, providers: [] });
  const config = parseConfig({ file: undefined, text: "", env: {} });
  const site = await startConsole({
    alerts: (access) => alertPortsOf({ store, credentials, inForce: () => config }, access),
  });
  onTestFinished(async () => {
    site.close();
    await store.close();
    rmSync(dataDir, { recursive: true });
  });
  const ada = await site.signedUp("ada");
  const bob = await site.signedUp("bob");
  const open = [undefined, bob.id].map((accountId, index) => ({
    finding: findingOf({ accountId, subject: `key:key_${index}` }),
    receivers: [],
  }));
  await store.alerts.apply({ nowMs: site.access.clock.now(), seen: [], open, resolve: [] });
  const found = await store.alerts.open();
  const [ofInstallation, ofBob] = [undefined, bob.id].map((id) => found.find(({ accountId }) => accountId === id)!.id);
  const { role } = await ada.role.create({ name: "Watch", permissions: ["alerts.read"], base: AccountRole.DEVELOPER });
  await ada.account.update({ id: bob.id, role: AccountRole.CUSTOM, customRoleId: role!.id });
  expect((await bob.alert.list({})).alerts).toHaveLength(2);
  await bob.alert.acknowledge({ id: ofBob! });
  expect((await errorOf(bob.alert.acknowledge({ id: ofInstallation! }))).code).toBe(Code.PermissionDenied);
  await ada.alert.acknowledge({ id: ofInstallation! });
});

import { readFile } from "node:fs/promises";
import type { OidcProvider } from "../access/oidc/provider.ts";
import { describeCauses } from "../access/oidc/refusal.ts";
import type { Config } from "../config/config.ts";
import { KEY_FILE } from "../config/scalars.ts";
import type { Clock } from "../core/clock.ts";
import type { OidcPorts } from "../inbound/dashboard/oidc-routes.ts";
import type { Logger } from "../telemetry/logger.ts";
import { LineLimit } from "./line-limit.ts";

/** Builds the sign-in at the OpenID provider; undefined where none is configured. */
export function oidcOf({ oidc }: Config["signIn"], clock: Clock, log: Logger): OidcPorts | undefined {
  if (oidc === undefined) return undefined;
  const { issuer, clientId, scopes, groupsClaim, roles, defaultRole, authTime } = oidc;
  const rules = {
    roles: new Map(Object.entries(roles)),
    defaultRole,
    requiresAuthTime: authTime === "required",
  };
  const needsGroups = rules.roles.size > 0;
  const clientSecret = () => readSecret(oidc.clientSecret);
  const lines = new LineLimit(clock);
  let created: Promise<OidcProvider> | undefined;
  return {
    // Imported on demand: few installations have a provider.
    provider: () =>
      (created ??= import("../access/oidc/provider.ts").then(
        (module) =>
          new module.OidcProvider({ issuer, clientId, clientSecret, scopes, groupsClaim, needsGroups, clock }),
      )),
    rules,
    refused({ reason, cause }) {
      const { isLogged, suppressed } = lines.take();
      if (suppressed > 0) log.info({ lines: suppressed }, "refused sign-ins at the OpenID provider were not logged");
      if (!isLogged) return;
      log.warn({ issuer, reason, cause: describeCauses(cause) }, "sign-in at the OpenID provider refused");
    },
  };
}

/** Reads the file at each use, so that a new secret needs no restart. */
async function readSecret(secret: string): Promise<string> {
  return secret.startsWith(KEY_FILE) ? (await readFile(secret.slice(KEY_FILE.length), "utf8")).trim() : secret;
}

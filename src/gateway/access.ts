import { randomUUID } from "node:crypto";
import type { Bindings, ShownCredentials } from "../access/bound-keys.ts";
import { createAuditLog } from "../access/audit-log.ts";
import type { AccessContext, FactorSecrets } from "../access/context.ts";
import { createPasswordHasher } from "../access/password-hash.ts";
import type { SignInRules } from "../access/sign-in-rules.ts";
import { createThrottle } from "../access/throttle.ts";
import { SignInQueue } from "../access/sign-in-queue.ts";
import { sendMail } from "../alerts/mail.ts";
import type { Config } from "../config/config.ts";
import { isExposed } from "../config/warnings.ts";
import type { Clock } from "../core/clock.ts";
import { readNames } from "../inbound/certificate-names.ts";
import { bearerToken } from "../inbound/current-key.ts";
import type { Credentials } from "../inbound/services.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type CredentialCipher, sealProblem } from "./account-credentials.ts";
import { tokenVerifierOf } from "./token-issuers.ts";

interface AccessPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The configuration in force, and its cipher, which a reload changes. */
interface InForce {
  readonly inForce: () => Config;
  readonly cipher: () => Pick<CredentialCipher, "sealTotp" | "openTotp">;
}

/** Builds the context of accounts and sessions. Entries of the audit log are written into the process's log too. */
export function accessOf(config: Config, { store, clock, log, inForce, cipher }: AccessPorts & InForce): AccessContext {
  return {
    store: store.accounts,
    throttle: createThrottle(store.throttles, clock),
    signInQueue: new SignInQueue(),
    passwords: createPasswordHasher(),
    factors: factorSecretsOf({ store, inForce, cipher }),
    resetMail: () => resetMailOf(inForce(), log),
    log: createAuditLog({
      store: store.audit,
      clock,
      actor: { kind: "nobody", id: undefined },
      listener(entry, lost) {
        const { actor, object, ...facts } = entry;
        const fields = {
          ...facts,
          actor: actor.kind,
          actor_id: actor.id,
          object: object?.kind,
          object_id: object?.id,
        };
        if (lost === undefined) return log.info(fields, "audit log");
        const cause = lost instanceof Error ? lost.message : "unknown";
        log.error({ ...fields, cause }, "entry of the audit log could not be stored");
      },
    }),
    clock,
    signUp: config.signUp,
    signIn: signInRulesOf(config),
    isExposed: isExposed(config),
  };
}

/** Encryption of second factors, and the key of challenges. */
export function factorSecretsOf({ store, inForce, cipher }: Pick<AccessPorts, "store"> & InForce): FactorSecrets {
  let key: Promise<Buffer> | undefined;
  return {
    seal: (secret, accountId) => cipher().sealTotp(secret, accountId),
    open: (sealed, accountId) => cipher().openTotp(sealed, accountId),
    sealProblem: () => sealProblem("authenticator apps", inForce()),
    async challengeKey() {
      key ??= store.secret("passkey challenges");
      try {
        return await key;
      } catch (reason) {
        key = undefined;
        throw reason;
      }
    },
  };
}

/**
 * Returns the function that sends a link for a new password; undefined without a server for e-mail, and without an address
 * for the link.
 */
function resetMailOf({ smtp, http: { publicUrl } }: Config, log: Logger): ReturnType<AccessContext["resetMail"]> {
  if (smtp === undefined || publicUrl === undefined) return undefined;
  return async (to, token) => {
    const link = `${new URL(publicUrl).origin}/sign-in#reset=${token}`;
    const lines = [
      `Somebody asked for a new password for your account at ${new URL(publicUrl).origin}. To set one, open:`,
      link,
      "The link works once, for an hour. If it was not you, do nothing: your password stays as it is.",
    ];
    const mail = { to: [to], subject: "Your new password for Parley", text: lines.join("\n\n"), id: randomUUID() };
    try {
      await sendMail(smtp, mail);
    } catch (cause) {
      log.warn({ cause: String(cause) }, "a link for a new password could not be sent");
      throw cause;
    }
  };
}

/** Sign-in rules of a configuration. */
export function signInRulesOf({ signIn: { oidc, ...rules } }: Pick<Config, "signIn">): SignInRules {
  return { ...rules, provider: oidc && { name: oidc.name, domains: new Set(oidc.domains) } };
}

/** Certificates and tokens that stand for keys, by the configuration in force. */
export class CallerBindings {
  readonly #ports: AccessPorts;
  #issuers = "[]";
  #inForce: Bindings = { certificates: new Map(), fronts: new Set(), tokens: undefined };

  constructor(ports: AccessPorts) {
    this.#ports = ports;
  }

  get inForce(): Bindings {
    return this.#inForce;
  }

  /**
   * Prepares a configuration; the returned function puts it in force. Unchanged issuers keep their keys and verified tokens.
   * Prepare another configuration only when the one before is in force or given up.
   */
  async prepare({ access }: Pick<Config, "access">): Promise<() => void> {
    const certificates = new Map(access.certificates.map(({ name, key }) => [name, key]));
    const issuers = JSON.stringify(access.issuers);
    const tokens =
      issuers === this.#issuers ? this.#inForce.tokens : await tokenVerifierOf(access.issuers, this.#ports);
    return () => {
      this.#issuers = issuers;
      this.#inForce = { certificates, fronts: new Set(access.fronts), tokens };
      const ids = [...access.certificates, ...access.issuers.flatMap(({ bindings }) => bindings)].map(({ key }) => key);
      if (ids.length > 0) void this.#warnOfMissing([...new Set(ids)]);
    };
  }

  async #warnOfMissing(ids: readonly string[]): Promise<void> {
    const names = await this.#ports.store.keys.names(ids).catch(() => undefined);
    for (const key of ids)
      if (names?.has(key) === false)
        this.#ports.log.warn({ setting: "access", key_id: key }, "there is no key with this ID");
  }
}

/**
 * Credentials that a caller presents. A front's header may have the names of its caller's certificate; its own end then
 * applies.
 */
export function toShown({ authorization, certificate }: Credentials, { fronts }: Bindings): ShownCredentials {
  if (authorization === undefined) return { token: undefined, certificate };
  const names = readNames(authorization);
  if (names !== undefined && certificate?.names.some((name) => fronts.has(name)) === true)
    return { token: undefined, certificate: { ...certificate, names } };
  return { token: bearerToken(authorization) ?? "", certificate };
}

import type { CredentialPlace, RoutingRules } from "../access/account-routing.ts";
import type { Config } from "../config/config.ts";
import { type Cipher, cipherOf, createCipher, readKey } from "../store/cipher.ts";

/** Decrypts an account's own credential; undefined for one of another key, account or provider. */
export type OpenCredential = (sealed: string, place: CredentialPlace) => string | undefined;

/** The place to which the credential of a stored provider is bound. */
interface ProviderPlace {
  readonly provider: string;
  /** Origin of the only address that it may be sent to. */
  readonly address: string;
}

/**
 * Encrypts and decrypts secrets in the database: credentials of accounts, API keys of stored providers, secrets of alerts' channels and of
 * authenticator apps.
 */
export interface CredentialCipher {
  readonly seal: RoutingRules["seal"];
  readonly open: OpenCredential;
  readonly sealKeys: (apiKeys: readonly string[], place: ProviderPlace) => string;
  /** Undefined for keys that were encrypted with another key, or for another provider or address. */
  readonly openKeys: (sealed: string, place: ProviderPlace) => readonly string[] | undefined;
  readonly sealChannel: (secrets: string, channelId: string) => string;
  /** Undefined for secrets that were encrypted with another key or for another channel. */
  readonly openChannel: (sealed: string, channelId: string) => string | undefined;
  readonly sealTotp: (secret: string, accountId: string) => string;
  /** Undefined for that of another key or account. */
  readonly openTotp: (sealed: string, accountId: string) => string | undefined;
}

/** File of the key in the data directory. */
const KEY_FILE = "account-credentials.key";

/**
 * Makes the cipher with the key of the configuration, or that of the data directory, which is read or made at once if a
 * provider is for credentials of accounts, else on first use. Also decrypts with the configured previous key. Throws a
 * StoreError for a file that is not a key.
 */
export function credentialCipherOf(
  config: Pick<Config, "accountCredentials" | "dataDir" | "providers">,
): CredentialCipher {
  const { encryptionKey, previousEncryptionKey } = config.accountCredentials;
  let current: Cipher | undefined;
  const ready = (): Cipher => (current ??= cipherOf(encryptionKey, config.dataDir, KEY_FILE));
  const previous = previousEncryptionKey === undefined ? undefined : createCipher(readKey(previousEncryptionKey));
  if (providersForAccounts(config).length > 0) ready();
  const open = (sealed: string, boundTo: readonly string[]): string | undefined =>
    (ready().open(sealed, boundTo) ?? previous?.open(sealed, boundTo))?.toString();
  const ofAccount = ({ accountId, provider }: CredentialPlace): string[] => ["credential", accountId, provider];
  const ofTotp = (accountId: string): string[] => ["totp", accountId];
  const ofChannel = (channelId: string): string[] => ["alert-channel", channelId];
  const ofProvider = ({ provider, address }: ProviderPlace): string[] => ["provider-credential", provider, address];
  return {
    seal: (secret, place) => ready().seal(Buffer.from(secret), ofAccount(place)),
    open: (sealed, place) => open(sealed, ofAccount(place)),
    sealKeys: (apiKeys, place) => ready().seal(Buffer.from(JSON.stringify(apiKeys)), ofProvider(place)),
    sealChannel: (secrets, channelId) => ready().seal(Buffer.from(secrets), ofChannel(channelId)),
    openChannel: (sealed, channelId) => open(sealed, ofChannel(channelId)),
    sealTotp: (secret, accountId) => ready().seal(Buffer.from(secret), ofTotp(accountId)),
    openTotp: (sealed, accountId) => open(sealed, ofTotp(accountId)),
    openKeys(sealed, place) {
      const text = open(sealed, ofProvider(place));
      return text === undefined ? undefined : (JSON.parse(text) as string[]);
    },
  };
}

/** Why secrets cannot be encrypted so that all replicas can decrypt them; undefined when they can. */
export function sealProblem(
  what: string,
  { databaseUrl, accountCredentials }: Pick<Config, "databaseUrl" | "accountCredentials">,
): string | undefined {
  if (databaseUrl === undefined || accountCredentials.encryptionKey !== undefined) return undefined;
  return `${what} need account_credentials.encryption_key in the configuration file of all replicas, because all need the same key`;
}

/** Names of the providers of a configuration for which accounts may have credentials. */
export function providersForAccounts({ providers }: Pick<Config, "providers">): readonly string[] {
  return providers.flatMap((provider) =>
    !provider.simulated && provider.takesAccountCredentials ? [provider.name] : [],
  );
}

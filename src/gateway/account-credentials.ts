import type { CredentialPlace, RoutingRules } from "../access/account-routing.ts";
import type { Config } from "../config/config.ts";
import { type Cipher, createCipher, keyOfDirectory, readKey } from "../store/cipher.ts";

/** Decrypts an account's own credential; undefined for one of another key, account or provider. */
export type OpenCredential = (sealed: string, place: CredentialPlace) => string | undefined;

/** Encrypts and decrypts accounts' own credentials. */
export interface CredentialCipher {
  readonly seal: RoutingRules["seal"];
  readonly open: OpenCredential;
}

/** File of the key in the data directory. */
const KEY_FILE = "account-credentials.key";

/**
 * With the key of the configuration, or that of the data directory, which is read or made at once if a provider is for credentials of
 * accounts, else on first use. Throws a StoreError for a file that is not a key.
 */
export function credentialCipherOf(
  config: Pick<Config, "accountCredentials" | "dataDir" | "providers">,
): CredentialCipher {
  const { encryptionKey } = config.accountCredentials;
  let cipher: Cipher | undefined;
  const ready = (): Cipher =>
    (cipher ??= createCipher(
      encryptionKey === undefined ? keyOfDirectory(config.dataDir, KEY_FILE) : readKey(encryptionKey),
    ));
  if (providersForAccounts(config).length > 0) ready();
  const boundTo = ({ accountId, provider }: CredentialPlace): string[] => ["credential", accountId, provider];
  return {
    seal: (secret, place) => ready().seal(Buffer.from(secret), boundTo(place)),
    open: (sealed, place) => ready().open(sealed, boundTo(place))?.toString(),
  };
}

/** Names of the providers of a configuration for which accounts may have credentials. */
export function providersForAccounts({ providers }: Pick<Config, "providers">): readonly string[] {
  return providers.flatMap((provider) =>
    !provider.simulated && provider.takesAccountCredentials ? [provider.name] : [],
  );
}

/** Key and account of requests that were refused without a valid key. */
export const NO_CALLER = "none";

export const NO_VALID_KEY = "No valid key";

/** Returns the display name of a request's key. */
export function keyLabel({ keyId, keyName }: { readonly keyId: string; readonly keyName: string }): string {
  return keyId === NO_CALLER ? NO_VALID_KEY : keyName || keyId;
}

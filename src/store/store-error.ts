/** The database cannot be used. The message is for the operator and says what to do about it. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}

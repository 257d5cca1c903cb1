/*
 * State of the Responses API in the signature of a part is base64 of a JSON object that Parley makes. Other signatures come from
 * providers, which refuse any that they did not make. MARK distinguishes this state, so that it is not sent to them.
 */

/** The beginning of the JSON. Its length is a multiple of three, so that its base64 is the beginning of the whole base64. */
const BEGINNING = '{"responses":1,';
const MARK = Buffer.from(BEGINNING).toString("base64");

export function isResponsesState(signature: string): boolean {
  return signature.startsWith(MARK);
}

/** Writes a state that is a JSON object with at least one field. */
export function writeResponsesState(state: object): string {
  return Buffer.from(BEGINNING + JSON.stringify(state).slice(1)).toString("base64");
}

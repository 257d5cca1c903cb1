/*
 * State of the Responses API in the signature of a part is base64 of a JSON object that Parley makes. What else signs a part comes from
 * providers, which refuse what they did not make: the mark keeps it from them.
 */

/** The beginning of the JSON; its length is a multiple of three, so that it is the beginning of the base64 too. */
const BEGINNING = '{"responses":1,';
const MARK = Buffer.from(BEGINNING).toString("base64");

export function isResponsesState(signature: string): boolean {
  return signature.startsWith(MARK);
}

/** Writes a state that is a JSON object with at least one field. */
export function writeResponsesState(state: object): string {
  return Buffer.from(BEGINNING + JSON.stringify(state).slice(1)).toString("base64");
}

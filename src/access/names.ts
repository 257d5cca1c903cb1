import { type Failure, invalidField } from "../core/failure.ts";

const MAX_NAME_LENGTH = 100;
/** Control characters, and those that change the direction of the text around them: a name could look like another. */
const FORBIDDEN = /[\p{Cc}\p{Bidi_Control}]/u;

/** A name for people, as it was given. Throws an `invalid_request` Failure. */
export function checkName(name: string): string {
  if (name.trim() === "") throw invalidField("name", "enter a name");
  if (name.length > MAX_NAME_LENGTH || FORBIDDEN.test(name) || !name.isWellFormed()) {
    throw invalidField(
      "name",
      `must be 1 to ${MAX_NAME_LENGTH} characters, without control or bidirectional formatting characters`,
    );
  }
  return name;
}

/** Whether the text can be an ID of ours, such as `acct_default`: no other is looked up, logged or repeated. */
export function isId(text: string): boolean {
  return /^[a-z]{2,8}_[0-9A-Za-z]{1,32}$/.test(text);
}

/**
 * The failure of a request that names something that is not there. Shows the ID only when it can be one: what somebody
 * pasted by mistake may be a secret, and failures are logged.
 */
export function unknownId(what: string, id: string): Failure {
  return invalidField("id", isId(id) ? `there is no ${what} ${id}` : `there is no such ${what}`);
}

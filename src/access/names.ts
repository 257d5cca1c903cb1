import { invalidField } from "../core/failure.ts";

const MAX_NAME_LENGTH = 100;

/** A name for people, as it was given. Throws an `invalid_request` Failure. */
export function checkName(name: string): string {
  if (name.trim() === "" || name.length > MAX_NAME_LENGTH || /\p{Cc}/u.test(name)) {
    throw invalidField("name", `must be 1 to ${MAX_NAME_LENGTH} characters without control characters`);
  }
  return name;
}

import { readOwnFile } from "../installation/own-files.ts";

/** The version in package.json. */
export function readVersion(): string {
  return (JSON.parse(readOwnFile("package.json")) as { version: string }).version;
}

import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** A function as a profile names it. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

/** Place of a function. */
export interface Place {
  /** A layer of Parley, a package, a module of Node, or V8's own work. */
  readonly layer: string;
  readonly name: string;
  readonly isOurs: boolean;
}

/** `root` is the project's folder, of which only `src/` counts as Parley's code. */
export function placeOf({ functionName, url, lineNumber }: CallFrame, root: string): Place {
  if (url === "") {
    // V8's own work has a name in parentheses, such as "(garbage collector)".
    const layer = functionName.startsWith("(") ? functionName : "(native)";
    return { layer, name: functionName === "" ? "(native)" : functionName, isOurs: false };
  }
  const name = functionName === "" ? "(anonymous)" : functionName;
  const path = url.startsWith("file:") ? relative(root, fileURLToPath(url)).split(sep).join("/") : url;
  const inPackage = /(?:^|\/)node_modules\/(?!.*\/node_modules\/)((@[^/]+\/)?[^/]+)\/(.*)$/.exec(path);
  const file = inPackage === null ? path : `${inPackage[1]}/${inPackage[3]}`;
  const layer = inPackage?.[1] ?? /^(src\/inbound\/[^/]+(?=\/)|src\/[^/]+|gen|node:[^/]+)/.exec(path)?.[0] ?? path;
  return { layer, name: `${name} ${file}:${lineNumber + 1}`, isOurs: path.startsWith("src/") };
}

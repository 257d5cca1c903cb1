import type { ConfigPath } from "../config-error.ts";
import { KEY_REMARKS } from "./key-remarks.ts";
import type { Part } from "./part.ts";

/** A remark for people about one setting of LiteLLM's file. */
export interface Remark {
  /** `no counterpart`: it is not in the result. `check`: it is, with a difference. */
  readonly kind: "no counterpart" | "check";
  /** Path of the setting in LiteLLM's file. */
  readonly path: ConfigPath;
  readonly text: string;
  /** The model or name of the result that it is about. */
  readonly model?: string;
}

/** Collects remarks. */
export class Remarks {
  readonly #all: Remark[] = [];

  get all(): readonly Remark[] {
    return this.#all;
  }

  /** `model`: of the result. Default: none. */
  lost(path: ConfigPath, text: string, model?: string): void {
    this.#add({ kind: "no counterpart", path, text }, model);
  }

  /** As `lost`. */
  check(path: ConfigPath, text: string, model?: string): void {
    this.#add({ kind: "check", path, text }, model);
  }

  /** Lists the keys of `part` that were not read. */
  unread(part: Part): void {
    for (const key of part.unread()) this.lost([...part.path, key], KEY_REMARKS[key] ?? "Parley has no such setting");
  }

  /** Adds the remarks of a part of the file, which are about `model`. */
  add(others: Remarks, model?: string): void {
    for (const remark of others.all) this.#add(remark, model);
  }

  #add(remark: Remark, model: string | undefined): void {
    this.#all.push(model === undefined ? remark : { ...remark, model });
  }
}

import type { Model } from "../../../gen/parley/v1/model_pb.js";
import type { Operation } from "../../formats/format.ts";

type Write = Extract<Operation, { readonly name: "models" }>["write"];

/** The texts of lists of models, by format. Those that were asked for without a query are kept as long as their list. */
export class ModelTexts {
  readonly #texts = new WeakMap<readonly Model[], Map<Write, string>>();

  /** Throws what the format throws for the query. */
  of(list: readonly Model[], write: Write, query: URLSearchParams): string {
    if (query.size > 0) return JSON.stringify(write(list, query));
    let texts = this.#texts.get(list);
    if (texts === undefined) this.#texts.set(list, (texts = new Map<Write, string>()));
    let text = texts.get(write);
    if (text === undefined) texts.set(write, (text = JSON.stringify(write(list, query))));
    return text;
  }
}

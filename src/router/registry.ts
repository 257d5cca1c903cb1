import type { Model } from "../core/model.ts";

/** The models of one configuration, by ID. Immutable: a reload makes a new one. */
export class Registry {
  readonly #models: ReadonlyMap<string, Model>;

  constructor(models: readonly Model[]) {
    this.#models = new Map(models.map((model) => [model.id, model]));
  }

  find(id: string): Model | undefined {
    return this.#models.get(id);
  }

  /** In the order of the configuration. */
  list(): readonly Model[] {
    return [...this.#models.values()];
  }
}

/** What a key may be used for besides its models. */
export type Capability = "chat" | "images";

/** Who calls us: an API key, already checked, and what it may do. */
export interface Principal {
  readonly keyId: string;
  readonly keyName: string;
  readonly accountId: string;
  /** The IDs of the models it may use; undefined means all. */
  readonly models: ReadonlySet<string> | undefined;
  readonly capabilities: ReadonlySet<Capability>;
}

/** Whether the key may use the model, by its ID. */
export function mayUse({ models }: Principal, model: string): boolean {
  return models === undefined || models.has(model);
}

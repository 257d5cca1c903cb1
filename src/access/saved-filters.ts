/** A filter of the dashboard's page of requests that an account has saved. */
export interface SavedFilter {
  readonly name: string;
  /** Query of the page's address. */
  readonly query: string;
}

/** Largest number of filters of an account. */
export const MAX_SAVED_FILTERS = 50;

/** The store of saved filters. */
export interface SavedFilters {
  /** By name. */
  list(accountId: string): Promise<readonly SavedFilter[]>;
  /** Saves a filter, in place of one of the same name. Answers false, and saves nothing, beyond MAX_SAVED_FILTERS. */
  save(accountId: string, filter: SavedFilter): Promise<boolean>;
  /** Does nothing when there is none of this name. */
  remove(accountId: string, name: string): Promise<void>;
}

/** A working key that needs attention. */
interface NoticedKey {
  readonly id: string;
  readonly name: string;
  readonly accountId: string;
}

interface ExpiringKey extends NoticedKey {
  readonly expiresAtMs: number;
}

/** A key near its budget, with what its family has spent in the month. */
interface SpentKey extends NoticedKey {
  readonly spentMicroUsd: number;
  readonly budgetMicroUsd: number;
}

interface NoticeQuery {
  /** Default: of all accounts. */
  readonly accountId: string | undefined;
  readonly nowMs: number;
  /** Largest number of keys. */
  readonly limit: number;
}

/**
 * Finds keys that need attention: they expire soon or are near their budget. Methods answer or reject within a few seconds.
 */
export interface KeyNotices {
  /** Keys that expire before this time and have no successor, the next to expire first. */
  expiring(query: NoticeQuery & { readonly untilMs: number }): Promise<readonly ExpiringKey[]>;
  /** Keys whose families have spent at least this share of their budget in a month (`2026-11`), the largest share first. */
  nearBudget(query: NoticeQuery & { readonly month: string; readonly share: number }): Promise<readonly SpentKey[]>;
}

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type ListKeysRequest, KeyOrder as OrderMessage } from "../../../gen/parley/console/v1/key_pb.js";
import {
  type KeyOrder,
  type KeyPosition,
  type KeyRecord,
  type KeyStore,
  mayContinue,
  type SortedKeysQuery,
} from "../../access/key-store.ts";
import { monthOf } from "../../core/clock.ts";
import { invalidField } from "../../core/failure.ts";
import { optionalTime } from "./account-messages.ts";
import { readPage, writeMoment } from "./list-page.ts";

const ORDERS: ReadonlyMap<OrderMessage, KeyOrder> = new Map([
  [OrderMessage.UNSPECIFIED, "created"],
  [OrderMessage.NAME, "name"],
  [OrderMessage.LAST_USE, "lastUse"],
  [OrderMessage.SPENT, "spent"],
  [OrderMessage.BUDGET, "budget"],
  [OrderMessage.EXPIRY, "expiry"],
]);

const MAX_FIND = 200;
const MAX_MODEL_ID = 256;

/** A page of keys. */
interface ListedKeys {
  readonly listed: readonly KeyRecord[];
  readonly nextPageToken: string;
  readonly omittedUntil?: Timestamp;
}

/** Lists the requested page of the keys of these accounts, or of all. Throws `invalid_request`. */
export async function listKeys(
  store: Pick<KeyStore, "list" | "listSorted">,
  request: ListKeysRequest,
  { accountIds, nowMs }: Pick<SortedKeysQuery, "accountIds" | "nowMs">,
): Promise<ListedKeys> {
  const { limit, pageToken } = request;
  const sort = readSort(request);
  if (sort === undefined) {
    const page = readPage({ limit, pageToken });
    const listed = await store.list(accountIds, page);
    const last = listed.at(-1);
    const continues = last !== undefined && mayContinue(listed, page.limit);
    return { listed, nextPageToken: continues ? writeMoment(last.createdAtMs, last.id) : "" };
  }
  const page = await store.listSorted({
    ...sort,
    accountIds,
    limit: readPage({ limit, pageToken: "" }).limit,
    after: readPosition(pageToken, sort.order),
    nowMs,
    month: monthOf(nowMs),
  });
  const { keys: listed, next, omittedUntilMs } = page;
  return { listed, nextPageToken: next ? writePosition(next) : "", ...optionalTime("omittedUntil", omittedUntilMs) };
}

/** The order and the filter of a list; undefined for all keys, oldest first. */
function readSort({ order: asked, descending: isDescending, active: isWorking, find, modelId }: ListKeysRequest) {
  const order = ORDERS.get(asked);
  if (order === undefined) throw invalidField("order", "is not known to this version");
  if (find.length > MAX_FIND) throw invalidField("find", `must have at most ${MAX_FIND} characters`);
  if (modelId.length > MAX_MODEL_ID) throw invalidField("model_id", "is not the ID of a model");
  const words = find.split(/[\s\0]+/).filter((word) => word !== "");
  if (order === "created" && !isDescending && isWorking === undefined && words.length === 0 && modelId === "")
    return undefined;
  return { order, isDescending, isWorking, words, modelId: modelId || undefined };
}

/** Writes the position of a page's last key as a token. */
function writePosition({ value, createdAtMs, id }: KeyPosition): string {
  return Buffer.from(JSON.stringify([value, createdAtMs, id])).toString("base64url");
}

/** Reads a token of `writePosition`; undefined for the first page. */
function readPosition(token: string, order: KeyOrder): KeyPosition | undefined {
  if (token === "") return undefined;
  const [value, createdAtMs, id] = readList(token);
  if (!isValueOf(order, value) || !isWhole(createdAtMs) || !isText(id))
    throw invalidField("page_token", "is not a valid page token");
  return { value, createdAtMs, id };
}

function readList(token: string): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(Buffer.from(token, "base64url").toString());
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

/** Whether keys of an order may have this value. */
function isValueOf(order: KeyOrder, value: unknown): value is KeyPosition["value"] {
  return order === "name" ? isText(value) : value === null || isWhole(value);
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** A text without null characters, which PostgreSQL does not take. */
function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= 400 && !value.includes("\0");
}

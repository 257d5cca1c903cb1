import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { foundKeysQuery, keyQuery, MAX_FIND } from "../api/keys.ts";
import { useOwnerNames } from "../api/owners.ts";
import { useAccount, useMay } from "../api/session.ts";
import { NO_CALLER, NO_VALID_KEY } from "../format/callers.ts";
import { type Choice, Choose, MANY } from "./choose.tsx";
import { useSettled } from "./use-settled.ts";

interface KeyFieldProps {
  /** ID of the key, or `NO_CALLER`. Empty: all. */
  readonly value: string;
  /** Keys of this account only. Empty: of all in view, or of the signed-in account if it does not see all requests. */
  readonly accountId: string;
  readonly onChange: (value: string) => void;
}

/** Filter field for the key of requests. Many keys are not loaded but found by the server. */
export function KeyField({ value, accountId, onChange }: KeyFieldProps) {
  const [text, setText] = useState("");
  const shownId = useShownAccount(accountId);
  const toChoice = useToChoice(shownId);
  const chosen = useKeyChoice(value, accountId);
  const { data: latest } = useQuery(foundKeysQuery(shownId, "", MANY));
  const find = useSettled(text).trim().slice(0, MAX_FIND);
  const search = useQuery(foundKeysQuery(shownId, find, MANY));
  const listed: readonly Choice[] = [
    ...(shownId === "" ? [[NO_CALLER, NO_VALID_KEY] as const] : []),
    ...(latest?.keys ?? []).map(toChoice),
  ];
  const found = (search.data?.keys ?? []).map(toChoice);
  return (
    <Choose
      label="Key"
      value={value}
      all="All keys"
      choices={[...new Map([...listed, ...chosen, ...found])]}
      {...(latest !== undefined &&
        latest.nextPageToken !== "" && {
          search: {
            found,
            isPending: search.isPlaceholderData || find !== text.trim().slice(0, MAX_FIND),
            isCut: search.data?.nextPageToken !== "",
            onText: setText,
          },
        })}
      onChange={onChange}
    />
  );
}

/** Returns the choice of the filtered key, for its chip; none for an empty value or before the key is loaded. */
export function useKeyChoice(value: string, accountId: string): readonly Choice[] {
  const { data: chosen } = useQuery({ ...keyQuery(value), enabled: value !== "" && value !== NO_CALLER });
  const toChoice = useToChoice(useShownAccount(accountId));
  if (value === NO_CALLER) return [[NO_CALLER, NO_VALID_KEY]];
  return chosen === undefined ? [] : [toChoice(chosen)];
}

function useShownAccount(accountId: string): string {
  const { id } = useAccount();
  const isAll = useMay("requests.read");
  return accountId === "" && !isAll ? id : accountId;
}

function useToChoice(shownId: string): (key: Key) => Choice {
  const names = useOwnerNames();
  return ({ id, name, accountId, state }) => {
    const owner = shownId === "" ? ` · ${names.get(accountId) ?? accountId}` : "";
    return [id, `${name}${owner}${state === KeyState.ACTIVE ? "" : " (inactive)"}`];
  };
}

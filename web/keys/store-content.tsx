import { useContentStoreDays } from "../api/requests.ts";
import { useMay } from "../api/session.ts";
import { CheckField, FieldGroup } from "../components/field.tsx";
import { STORE_CONTENT } from "./choices.ts";

/** Field for the storage of prompts and answers: for administrators, where the installation stores any. */
export function StoreContent({ isOn, error }: { readonly isOn: boolean; readonly error: string | undefined }) {
  const days = useContentStoreDays();
  const mayRestrict = useMay("keys.restrict");
  if (!mayRestrict || (days === 0 && !isOn)) return null;
  const kept = days === 0 ? "none are kept now" : days === 1 ? "kept for 1 day" : `kept for ${days} days`;
  return (
    <FieldGroup
      label="Stored content"
      hint={`Encrypted, ${kept}, readable with the permission content.read. Tell the people who use the key.`}
      error={error}
    >
      <input type="hidden" name={STORE_CONTENT} value="no" />
      <CheckField name={STORE_CONTENT} value="yes" label="Store prompts and answers" defaultChecked={isOn} />
    </FieldGroup>
  );
}

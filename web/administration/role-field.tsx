import type { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { SelectField } from "../components/field.tsx";
import { ROLE_NAMES } from "./roles.ts";

interface RoleFieldProps {
  readonly defaultValue: AccountRole;
  /** Validation error. */
  readonly error: string | undefined;
}

/** Field for the role of an account. */
export function RoleField({ defaultValue, error }: RoleFieldProps) {
  return (
    <SelectField
      label="Role"
      name="role"
      defaultValue={defaultValue}
      hint="Administrators manage everything; members manage their own keys."
      error={error}
    >
      {ROLE_NAMES.map(([role, name]) => (
        <option key={role} value={role}>
          {name}
        </option>
      ))}
    </SelectField>
  );
}

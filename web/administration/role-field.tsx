import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { isOwner, useAccount } from "../api/session.ts";
import { SelectField } from "../components/field.tsx";
import { ROLE_NAMES } from "../format/roles.ts";

interface RoleFieldProps {
  readonly defaultValue: AccountRole;
  /** Validation error. */
  readonly error: string | undefined;
}

/** Field for the role of an account; only owners can choose owner. */
export function RoleField({ defaultValue, error }: RoleFieldProps) {
  const own = useAccount();
  return (
    <SelectField
      label="Role"
      name="role"
      defaultValue={defaultValue}
      hint="Owners manage everything; administrators all but owners; developers their own keys; viewers change nothing."
      error={error}
    >
      {ROLE_NAMES.filter(([role]) => role !== AccountRole.OWNER || isOwner(own) || role === defaultValue).map(
        ([role, name]) => (
          <option key={role} value={role}>
            {name}
          </option>
        ),
      )}
    </SelectField>
  );
}

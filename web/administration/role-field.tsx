import { useQuery } from "@tanstack/react-query";
import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { rolesQuery } from "../api/roles.ts";
import { useMay } from "../api/session.ts";
import { SelectField } from "../components/field.tsx";
import { ROLE_NAMES } from "../format/roles.ts";

interface RoleFieldProps {
  /** Value of a role, as `roleValue` returns it. */
  readonly defaultValue: string;
  /** Validation error. */
  readonly error: string | undefined;
}

/** Field for the role of an account; only owners can choose owner. */
export function RoleField({ defaultValue, error }: RoleFieldProps) {
  const mayMakeOwners = useMay("owners.write");
  const custom = useQuery(rolesQuery).data?.roles ?? [];
  const shown = ROLE_NAMES.filter(
    ([role]) => role !== AccountRole.OWNER || mayMakeOwners || String(role) === defaultValue,
  );
  return (
    <SelectField
      // The default may be a custom role, which loads later: a new key selects it once its option exists.
      key={custom.length}
      label="Role"
      name="role"
      defaultValue={defaultValue}
      hint="Owners manage everything; administrators all but owners; developers their own keys; viewers change nothing."
      error={error}
    >
      {shown.map(([role, name]) => (
        <option key={role} value={role}>
          {name}
        </option>
      ))}
      {custom.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </SelectField>
  );
}

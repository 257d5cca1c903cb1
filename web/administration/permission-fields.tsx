import { CheckField, FieldGroup } from "../components/field.tsx";

interface PermissionFieldsProps {
  readonly label: string;
  /** Permissions that can be selected. */
  readonly permissions: readonly string[];
  readonly chosen?: readonly string[] | undefined;
  readonly hint: string;
  /** Validation error. */
  readonly error: string | undefined;
}

/** Checkboxes of permissions, with the name `permissions`. */
export function PermissionFields({ label, permissions, chosen, hint, error }: PermissionFieldsProps) {
  return (
    <FieldGroup label={label} hint={hint} error={error}>
      <div className="grid gap-x-4 font-mono sm:grid-cols-2">
        {permissions.map((permission) => (
          <CheckField
            key={permission}
            label={permission}
            name="permissions"
            value={permission}
            defaultChecked={chosen?.includes(permission)}
          />
        ))}
      </div>
    </FieldGroup>
  );
}

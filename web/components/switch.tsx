import type { ReactNode } from "react";

interface SwitchProps {
  readonly on: boolean;
  readonly onChange: (on: boolean) => void;
  readonly disabled?: boolean;
  readonly children: ReactNode;
}

/** Toggle switch. */
export function Switch({ on, onChange, disabled = false, children }: SwitchProps) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={on}
      disabled={disabled}
      onClick={() => onChange(!on)}
      className="inline-flex min-h-11 items-center gap-2.5 rounded-lg px-2 text-sm font-medium disabled:opacity-60 sm:min-h-10"
    >
      <span
        aria-hidden
        className={`flex h-5 w-9 items-center rounded-full border p-0.5 transition-colors ${on ? "justify-end border-accent bg-accent" : "border-edge bg-sunken"}`}
      >
        <span className={`size-3.5 rounded-full ${on ? "bg-on-accent" : "bg-edge"}`} />
      </span>
      {children}
    </button>
  );
}

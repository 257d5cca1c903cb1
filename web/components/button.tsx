import type { ComponentProps } from "react";

const LOOKS = {
  primary: "bg-accent text-on-accent hover:bg-accent-strong",
  secondary: "border border-line bg-surface text-ink hover:bg-sunken",
  quiet: "text-accent hover:bg-accent-soft",
  danger: "bg-danger text-on-danger hover:bg-danger-strong",
  "quiet danger": "text-danger hover:bg-danger-soft",
} as const;

/** Returns the CSS classes of a button, also for buttons rendered by a library. */
export function buttonClass(look: keyof typeof LOOKS, size: "normal" | "small" = "normal"): string {
  const room = size === "small" ? "min-h-9 px-3" : "min-h-11 px-4 sm:min-h-9";
  return `inline-flex items-center justify-center gap-2 rounded-lg text-sm font-medium transition-colors disabled:opacity-60 ${room} ${LOOKS[look]}`;
}

interface ButtonProps extends ComponentProps<"button"> {
  readonly look?: keyof typeof LOOKS;
  readonly size?: "normal" | "small";
  /** The action is in progress: the button is disabled. */
  readonly busy?: boolean;
}

export function Button({ look = "primary", size = "normal", busy = false, className = "", ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={busy || rest.disabled === true}
      aria-busy={busy || undefined}
      className={`${buttonClass(look, size)} ${className}`}
    />
  );
}

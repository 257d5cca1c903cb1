import mark from "../mark.svg";

/** Logo and name of Parley. */
export function Mark() {
  return (
    <span className="inline-flex items-center gap-2.5 text-lg font-semibold tracking-tight">
      <img src={mark} alt="" width={28} height={28} />
      Parley
    </span>
  );
}

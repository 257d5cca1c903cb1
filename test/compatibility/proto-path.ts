import type { DescMessage } from "@bufbuild/protobuf";

/** Whether a path of field names, `messages[].content[].image`, exists in a message of the contract. */
export function hasProtoField(message: DescMessage, path: string): boolean {
  const [first = "", ...rest] = path.split(".");
  const field = message.fields.find(({ name }) => name === first.replace("[]", ""));
  if (field === undefined || (first.endsWith("[]") && field.fieldKind !== "list")) return false;
  return rest.length === 0 || (field.message !== undefined && hasProtoField(field.message, rest.join(".")));
}

// A plugin of buf: writes the public contract's comments as pages, one for each .proto file. `npm run generate` runs it.
import {
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescService,
  ScalarType,
} from "@bufbuild/protobuf";
import { createEcmaScriptPlugin, getComments, runNodeJs, type Schema } from "@bufbuild/protoplugin";

const PACKAGE = "parley.v1";

runNodeJs(
  createEcmaScriptPlugin({
    name: "protoc-gen-markdown",
    version: "v1",
    generateTs() {
      throw new Error("set the option target=js");
    },
    generateJs(schema: Schema) {
      for (const file of schema.files) {
        if (file.proto.package !== PACKAGE) continue;
        const page = schema.generateFile(pageOf(file));
        for (const line of write(file)) page.print(line);
      }
    },
  }),
);

type Described = Parameters<typeof getComments>[0];

/** Name of a file's page: `completion.md`. */
const pageOf = ({ name }: DescFile): string => `${name.slice(name.lastIndexOf("/") + 1)}.md`;

function write(file: DescFile): string[] {
  const { services, messages, enums } = file;
  return [
    `# ${file.name}.proto`,
    "",
    `Package \`${PACKAGE}\`, from the comments of \`proto/${file.name}.proto\` (\`npm run generate\`).`,
    "",
    ...services.flatMap(writeService),
    ...messages.flatMap((message) => writeMessage(message, file)),
    ...enums.flatMap(writeEnum),
  ].slice(0, -1);
}

function writeService(service: DescService): string[] {
  const methods = service.methods.flatMap((method) => {
    const { name, input, output, methodKind } = method;
    const stream = methodKind === "server_streaming" ? "stream of " : "";
    const answer = `${stream}${linkTo(output, service.file)}`;
    return [`### ${service.name}.${name}`, "", `${linkTo(input, service.file)} → ${answer}`, "", ...paragraphs(method)];
  });
  return [`## ${service.name}`, "", ...paragraphs(service), ...methods];
}

function writeMessage(message: DescMessage, file: DescFile): string[] {
  const rows = message.fields.map((field) => {
    const choice = field.oneof === undefined ? "" : `One of \`${field.oneof.name}\`. `;
    return `| \`${field.name}\` | ${field.number} | ${typeOf(field, file)} | ${choice}${inCell(field)} |`;
  });
  const table =
    rows.length === 0 ? [] : ["| field | number | type | meaning |", "| --- | ---: | --- | --- |", ...rows, ""];
  return [`## ${message.name}`, "", ...paragraphs(message), ...table];
}

function writeEnum(desc: DescEnum): string[] {
  const rows = desc.values.map((value) => `| \`${value.name}\` | ${value.number} | ${inCell(value)} |`);
  return [
    `## ${desc.name}`,
    "",
    ...paragraphs(desc),
    "| value | number | meaning |",
    "| --- | ---: | --- |",
    ...rows,
    "",
  ];
}

function typeOf(field: DescField, file: DescFile): string {
  switch (field.fieldKind) {
    case "map":
      return `map of ${ScalarType[field.mapKey].toLowerCase()} to ${elementOf(field, file)}`;
    case "list":
      return `repeated ${elementOf(field, file)}`;
    default: {
      const isOptional = field.proto.proto3Optional;
      return `${isOptional ? "optional " : ""}${elementOf(field, file)}`;
    }
  }
}

function elementOf({ message, enum: values, scalar }: DescField, file: DescFile): string {
  const desc = message ?? values;
  return desc === undefined ? ScalarType[scalar!].toLowerCase() : linkTo(desc, file);
}

/** A link to the type's own section; the name alone for types of other packages. */
function linkTo(desc: DescMessage | DescEnum, from: DescFile): string {
  if (desc.file.proto.package !== PACKAGE) return `\`${desc.typeName}\``;
  const page = desc.file === from ? "" : pageOf(desc.file);
  return `[${desc.name}](${page}#${desc.name.toLowerCase()})`;
}

/** The comment, each paragraph on one line and followed by an empty one. */
function paragraphs(desc: Described): string[] {
  return textOf(desc).flatMap((paragraph) => [paragraph, ""]);
}

const inCell = (desc: Described): string => textOf(desc).join(" ").replaceAll("|", "\\|");

function textOf(desc: Described): string[] {
  const text = getComments(desc).leading ?? "";
  return text.split(/\n\s*\n/).map((paragraph) => paragraph.replaceAll(/\s+/g, " ").trim());
}

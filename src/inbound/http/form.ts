import {
  getMultipartBoundary,
  MaxHeaderSizeExceededError,
  MaxPartsExceededError,
  type MultipartPart,
  parseMultipart,
} from "@remix-run/multipart-parser";
import { Failure } from "../../core/failure.ts";
import type { FormField } from "../../formats/format.ts";
import { unreadable } from "./exchange.ts";

const MAX_FIELDS = 100;
/** Limit of the headers of one field, which have some hundred bytes: the parser takes a microsecond for each line. */
const MAX_HEADER_BYTES = 2 * 1024;
/** RFC 2046, 5.1.1. */
const MAX_BOUNDARY_LENGTH = 70;

/** Whether a content type is that of forms with files. */
export function isFormType(type = ""): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(type);
}

/**
 * Parses a multipart/form-data body; the fields' data are views of it. Throws `invalid_request` that says what is wrong.
 */
export function parseForm(body: Buffer, contentType: string): FormField[] {
  const boundary = getMultipartBoundary(contentType)?.trim() ?? "";
  if (boundary === "" || boundary.length > MAX_BOUNDARY_LENGTH)
    throw new Failure(
      "invalid_request",
      `The content-type header must have a boundary of 1 to ${MAX_BOUNDARY_LENGTH} characters: let the client's library set the header.`,
    );
  if (body.length === 0) throw unreadable("is empty; it must be a form");
  const fields: FormField[] = [];
  for (const part of partsOf(body, boundary)) fields.push(toField(part, fields.length + 1));
  return fields;
}

/** The body as a whole is limited when it is read. */
function partsOf(body: Buffer, boundary: string): MultipartPart[] {
  const limits = { maxFileSize: body.length, maxTotalSize: body.length, maxParts: MAX_FIELDS };
  try {
    return [...parseMultipart(body, { boundary, maxHeaderSize: MAX_HEADER_BYTES, ...limits })];
  } catch (reason) {
    if (reason instanceof MaxPartsExceededError) throw unreadable(`has more than ${MAX_FIELDS} parts`);
    if (reason instanceof MaxHeaderSizeExceededError)
      throw unreadable(`has a part with more than ${MAX_HEADER_BYTES / 1024} KiB of headers, or one without an end`);
    throw unreadable(
      "is not valid multipart/form-data: it must begin with the boundary of its content type, and end with it and two hyphens",
    );
  }
}

function toField(part: MultipartPart, number: number): FormField {
  const { name, mediaType } = headersOf(part);
  if (name === undefined || name === "")
    throw unreadable(`has no name for its part ${number}: a part needs content-disposition: form-data; name="…"`);
  // A body that is parsed at once has its contents in one piece.
  const [first = new Uint8Array()] = part.content;
  return { name, data: Buffer.from(first.buffer, first.byteOffset, first.length), mediaType: mediaType ?? "" };
}

/** Undefined for headers that are not UTF-8. */
function headersOf(part: MultipartPart): { name?: string | undefined; mediaType?: string | undefined } {
  try {
    return { name: part.name, mediaType: part.mediaType };
  } catch {
    return {};
  }
}

package dev.parley.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.BadRequest.FieldViolation;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.parley.v1.Attempt;
import dev.parley.v1.AttemptList;
import dev.parley.v1.ErrorReason;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * A call failed. Its cause is gRPC's {@link StatusRuntimeException}; its message has the code, the reason, what is wrong
 * and what to do, and the request ID.
 */
public final class ParleyException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final Metadata.Key<String> PUSHBACK =
      Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

  private final Status.Code code;
  private final String reason;
  private final String requestId;
  private final List<FieldViolation> fieldViolations;
  private final List<Attempt> attempts;
  private final boolean isRetryable;
  private final Duration retryAfter;

  /** @param knownRequestId the ID in the response's metadata, else the one that was sent, else null */
  ParleyException(StatusRuntimeException cause, String knownRequestId) {
    super(cause);
    Metadata trailers = Objects.requireNonNullElseGet(cause.getTrailers(), Metadata::new);
    List<Any> details = StatusProto.fromStatusAndTrailers(cause.getStatus(), trailers).getDetailsList();
    Optional<Duration> delay = find(details, RetryInfo.class).map(ParleyException::delay);
    Optional<Long> pushbackMs = Optional.ofNullable(trailers.get(PUSHBACK)).map(Long::valueOf);
    code = cause.getStatus().getCode();
    reason = find(details, ErrorInfo.class).map(ErrorInfo::getReason).orElse("");
    String ownRequestId = trailers.get(Call.REQUEST_ID);
    requestId = ownRequestId != null ? ownRequestId : Objects.requireNonNullElse(knownRequestId, "");
    fieldViolations = find(details, BadRequest.class).map(BadRequest::getFieldViolationsList).orElse(List.of());
    attempts = find(details, AttemptList.class).map(AttemptList::getAttemptsList).orElse(List.of());
    isRetryable = pushbackMs.map(ms -> ms >= 0).orElse(delay.isPresent() || code == Status.Code.UNAVAILABLE);
    retryAfter = delay.orElse(null);
  }

  /**
   * Converts an error of a generated stub on {@link ParleyClient#channel}.
   *
   * @param error gRPC's exception, or one that it caused
   * @return the same as an exception of this class
   */
  public static ParleyException from(Throwable error) {
    Metadata trailers = Status.trailersFromThrowable(error);
    return new ParleyException(Status.fromThrowable(error).asRuntimeException(trailers), null);
  }

  /**
   * Returns the status of the call. It is DEADLINE_EXCEEDED when the timeout passed, CANCELLED when the stream was closed
   * or the thread interrupted.
   *
   * @return the status code
   */
  public Status.Code code() {
    return code;
  }

  /**
   * Returns the name of Parley's reason, such as {@code MODEL_NOT_FOUND}, also of one that this version does not know.
   *
   * @return the name; empty when the failure is not Parley's, such as a lost connection
   */
  public String reason() {
    return reason;
  }

  /**
   * Returns the value that {@link #reason} names.
   *
   * @return the value; ERROR_REASON_UNSPECIFIED without a reason, and for a reason of a later version
   */
  public ErrorReason errorReason() {
    var value = ErrorReason.getDescriptor().findValueByName("ERROR_REASON_" + reason);
    return value == null ? ErrorReason.ERROR_REASON_UNSPECIFIED : ErrorReason.valueOf(value);
  }

  /**
   * Returns what is wrong and what to do, without the code and the request ID of {@link #getMessage}.
   *
   * @return the description; may be empty
   */
  public String description() {
    Status status = getCause().getStatus();
    String description = Objects.requireNonNullElse(status.getDescription(), "");
    if (status.getCause() == null) return description;
    // A connection failed: the description is "io exception" and lines about the channel; the causes say what happened.
    description = description.lines().findFirst().orElse("");
    for (Throwable cause = status.getCause(); cause != null; cause = cause.getCause()) {
      String message = cause.getMessage();
      if (message != null && !description.contains(message)) description += ": " + message;
    }
    return description;
  }

  /**
   * Returns the ID of the call, for the operator.
   *
   * @return the ID; empty when Parley did not answer and the caller sent none
   */
  public String requestId() {
    return requestId;
  }

  /**
   * Returns the fields of the request that are wrong.
   *
   * @return the fields, each with a description
   */
  public List<FieldViolation> fieldViolations() {
    return fieldViolations;
  }

  /**
   * Returns the upstream models that were tried or skipped.
   *
   * @return the attempts, in order
   */
  public List<Attempt> attempts() {
    return attempts;
  }

  /**
   * Returns whether the same call may succeed later. Retries by the service config have been made already.
   *
   * @return whether a retry may help
   */
  public boolean isRetryable() {
    return isRetryable;
  }

  /**
   * Returns how long to wait before another call.
   *
   * @return the time; empty when Parley did not say
   */
  public Optional<Duration> retryAfter() {
    return Optional.ofNullable(retryAfter);
  }

  @Override
  public String getMessage() {
    String request = requestId.isEmpty() ? "" : " (request " + requestId + ")";
    return (reason.isEmpty() ? code.name() : reason) + ": " + description() + request;
  }

  /** Returns gRPC's exception, with all metadata and details. */
  @Override
  public synchronized StatusRuntimeException getCause() {
    return (StatusRuntimeException) super.getCause();
  }

  private static Duration delay(RetryInfo info) {
    return Duration.ofSeconds(info.getRetryDelay().getSeconds(), info.getRetryDelay().getNanos());
  }

  private static <T extends Message> Optional<T> find(List<Any> details, Class<T> type) {
    for (Any detail : details) {
      if (!detail.is(type)) continue;
      try {
        return Optional.of(detail.unpack(type));
      } catch (InvalidProtocolBufferException e) {
        return Optional.empty();
      }
    }
    return Optional.empty();
  }
}

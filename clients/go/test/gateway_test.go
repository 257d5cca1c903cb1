// Package app tests the packed module against a gateway, through its public interface and with its defaults.
package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	parley "parley.dev/go"
	parleyv1 "parley.dev/go/parley/v1"
)

const (
	model      = "alpha-haiku-4.5"
	toolsModel = "beta-3-flash"
	mib        = 1 << 20
)

func newClient(t *testing.T, key string, opts ...parley.Option) *parley.Client {
	t.Helper()
	client, err := parley.NewClient(os.Getenv("PARLEY_GRPC"), key, append(opts, parley.WithPlaintext())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func connect(t *testing.T, opts ...parley.Option) *parley.Client {
	return newClient(t, os.Getenv("PARLEY_API_KEY"), opts...)
}

func ask(model, text string) *parleyv1.CompletionRequest {
	return &parleyv1.CompletionRequest{Model: model, Messages: []*parleyv1.Message{parley.UserText(text)}}
}

// collect runs a stream to its end and returns its chunks beside what the accumulator makes of them.
func collect(
	t *testing.T, client *parley.Client, request *parleyv1.CompletionRequest,
) ([]*parleyv1.CompletionChunk, *parleyv1.Completion) {
	t.Helper()
	var chunks []*parleyv1.CompletionChunk
	var answer parley.Accumulator
	for chunk, err := range client.Completions.Stream(t.Context(), request) {
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Add(chunk); err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, chunk)
	}
	return chunks, answer.Completion()
}

// failure returns the error of a call that has to fail with this code.
func failure(t *testing.T, err error, code codes.Code) *parley.Error {
	t.Helper()
	var failed *parley.Error
	if !errors.As(err, &failed) {
		t.Fatalf("want a *parley.Error, got %T: %v", err, err)
	}
	if failed.Code != code || status.Code(err) != code {
		t.Fatalf("want %v, got %v: %v", code, failed.Code, err)
	}
	return failed
}

// upstreamCalls returns the states of a model's upstream calls, in order.
func upstreamCalls(t *testing.T, model string) []string {
	t.Helper()
	response, err := http.Get(os.Getenv("PARLEY_UPSTREAM") + "/calls/" + model)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var states []string
	if err := json.NewDecoder(response.Body).Decode(&states); err != nil {
		t.Fatal(err)
	}
	return states
}

// expectClosed waits until the upstream call after the first n ones is closed.
func expectClosed(t *testing.T, model string, n int) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Second)
	for {
		states := upstreamCalls(t, model)
		if len(states) == n+1 && states[n] == "closed" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the upstream call after %d others is not closed: %v", n, states)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestCreateReturnsAnAnswer(t *testing.T) {
	request := ask(model, "Tell me about tides.")
	completion, err := connect(t).Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	choice := completion.GetChoices()[0]
	if parley.TextOf(choice.Message) == "" || choice.Message.Role != parleyv1.Role_ROLE_ASSISTANT {
		t.Errorf("no answer in %v", choice)
	}
	if choice.FinishReason != parleyv1.FinishReason_FINISH_REASON_STOP {
		t.Errorf("finished for %v", choice.FinishReason)
	}
	usage := completion.GetUsage()
	if usage.GetInputTokens() == 0 || usage.GetTotalTokens() != usage.GetInputTokens()+usage.GetOutputTokens() {
		t.Errorf("counted %v", usage)
	}
	if attempts := completion.GetReport().GetAttempts(); len(attempts) != 1 || attempts[0].Model != model {
		t.Errorf("tried %v", attempts)
	}
	if request.MaxResponseBytes != nil {
		t.Error("the caller's request was changed")
	}
}

func TestCount(t *testing.T) {
	client := connect(t)
	short, err := client.Completions.Count(t.Context(), ask(model, "Hello."))
	if err != nil {
		t.Fatal(err)
	}
	long, err := client.Completions.Count(t.Context(), ask(model, strings.Repeat("Hello. ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if short.GetModel() != model || short.GetInputTokens() == 0 || long.GetInputTokens() <= short.GetInputTokens() {
		t.Errorf("counted %v and %v", short, long)
	}
}

func TestMetadataOfACall(t *testing.T) {
	client := connect(t)
	check := func(id string, header metadata.MD) {
		t.Helper()
		if got := header.Get("x-request-id"); !slices.Equal(got, []string{id}) {
			t.Errorf("want request ID %s, got %v", id, got)
		}
		for _, name := range []string{"parley-requested-model", "parley-served-model"} {
			if got := header.Get(name); !slices.Equal(got, []string{model}) {
				t.Errorf("%s: %v", name, got)
			}
		}
		for _, name := range []string{"parley-attempts", "parley-overhead-ms"} {
			if got := header.Get(name); len(got) != 1 || got[0] == "" {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	var header metadata.MD
	_, err := client.Completions.Create(parley.WithRequestID(t.Context(), "create-1"), ask(model, "Hello."), grpc.Header(&header))
	if err != nil {
		t.Fatal(err)
	}
	check("create-1", header)
	for _, err := range client.Completions.Stream(
		parley.WithRequestID(t.Context(), "stream-1"), ask(model, "Hello."), grpc.Header(&header),
	) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check("stream-1", header)
}

func TestStreamFollowsItsGrammar(t *testing.T) {
	request := ask(model, "Tell me about tides.")
	request.Seed = new(int64(7))
	client := connect(t)
	chunks, answer := collect(t, client, request)

	started, finished := 0, 0
	var text strings.Builder
	for i, chunk := range chunks {
		if (i == 0) != (chunk.GetStart() != nil) || (i == len(chunks)-1) != (chunk.GetReport() != nil) {
			t.Errorf("chunk %d of %d is %v", i+1, len(chunks), chunk)
		}
		switch event := chunk.GetEvent().(type) {
		case *parleyv1.CompletionChunk_PartStart:
			if int(event.PartStart.PartIndex) != started {
				t.Errorf("part %d begins after %d others", event.PartStart.PartIndex, started)
			}
			started++
		case *parleyv1.CompletionChunk_PartDelta:
			if started != finished+1 {
				t.Errorf("a delta outside of a part: %v", chunk)
			}
			text.WriteString(event.PartDelta.GetText())
		case *parleyv1.CompletionChunk_PartFinish:
			finished++
		case *parleyv1.CompletionChunk_ChoiceFinish:
			if started == 0 || started != finished {
				t.Errorf("%d parts began, %d were finished", started, finished)
			}
		}
	}

	if got := parley.TextOf(answer.GetChoices()[0].GetMessage()); got == "" || got != text.String() {
		t.Errorf("the pieces say %q, the accumulator %q", text.String(), got)
	}
	whole, err := client.Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetId() != chunks[0].GetStart().GetId() || answer.GetCreateTime() == nil || answer.GetReport() == nil {
		t.Errorf("accumulated %v", answer)
	}
	expectSame(t, answer, whole)
}

// expectSame compares two completions of one request except for what differs between calls.
func expectSame(t *testing.T, got, want *parleyv1.Completion) {
	t.Helper()
	plain := func(completion *parleyv1.Completion) *parleyv1.Completion {
		content := &parleyv1.Completion{Model: completion.Model, Choices: completion.Choices, Usage: completion.Usage}
		content = proto.CloneOf(content)
		for _, call := range parley.ToolCallsOf(content.GetChoices()[0].GetMessage()) {
			call.Id = ""
		}
		return content
	}
	if !proto.Equal(plain(got), plain(want)) {
		t.Errorf("accumulated %.1000v\ncreated %.1000v", plain(got), plain(want))
	}
}

func TestStreamOfNativeBlocks(t *testing.T) {
	client := connect(t)
	request := ask("coder", "Compute.")
	_, streamed := collect(t, client, request)
	whole, err := client.Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	expectSame(t, streamed, whole)
	code := whole.GetChoices()[0].GetMessage().GetParts()[1].GetNative()
	if code.GetDialect() != "gemini" || !json.Valid([]byte(code.GetJson())) {
		t.Errorf("the code is %v", code)
	}
}

func TestStreamOfReasoningAndTools(t *testing.T) {
	request := ask(toolsModel, "How is the weather in Bergen?")
	request.Seed = new(int64(7))
	request.Reasoning = &parleyv1.ReasoningOptions{
		Effort: parleyv1.ReasoningEffort_REASONING_EFFORT_HIGH,
	}
	request.Tools = []*parleyv1.Tool{weatherTool()}
	client := connect(t)
	_, answer := collect(t, client, request)
	whole, err := client.Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	expectSame(t, answer, whole)
	parts := answer.GetChoices()[0].GetMessage().GetParts()
	if parts[0].GetReasoning().GetText() == "" || parts[len(parts)-1].GetToolCall() == nil {
		t.Errorf("the answer has neither reasoning nor a tool call: %v", parts)
	}
}

func TestPictures(t *testing.T) {
	client := connect(t)

	question := ask(model, "What is this?")
	question.Messages[0].Parts = append(question.Messages[0].Parts, parley.Image("image/png", tinyPNG))
	seen, err := client.Completions.Create(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	if text := parley.TextOf(seen.GetChoices()[0].GetMessage()); !strings.Contains(text, fmt.Sprintf("%d bytes", len(tinyPNG))) {
		t.Errorf("the model did not see the picture: %s", text)
	}

	request := ask("painter", "A lighthouse.")
	request.Modalities = []parleyv1.Modality{parleyv1.Modality_MODALITY_TEXT, parleyv1.Modality_MODALITY_IMAGE}
	_, streamed := collect(t, client, request)
	created, err := client.Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("parley"), 6*mib/6+1)[:6*mib]
	for name, completion := range map[string]*parleyv1.Completion{"streamed": streamed, "created": created} {
		image := completion.GetChoices()[0].GetMessage().GetParts()[0].GetImage()
		if image.GetMediaType() != "image/png" || !bytes.Equal(image.GetData(), want) {
			t.Errorf("%s: %s of %d bytes", name, image.GetMediaType(), len(image.GetData()))
		}
	}

	request.MaxResponseBytes = new(int32(mib))
	_, err = client.Completions.Create(t.Context(), request)
	if failed := failure(t, err, codes.ResourceExhausted); failed.Reason != "RESPONSE_TOO_LARGE" || failed.Retryable {
		t.Errorf("the caller's own limit: %#v", failed)
	}
}

// tinyPNG has the signature and the header of a picture of one pixel.
var tinyPNG = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde")

func TestLargeRequest(t *testing.T) {
	request := ask(model, "What is this?")
	picture := append(slices.Clone(tinyPNG), make([]byte, 6*mib)...)
	request.Messages[0].Parts = append(request.Messages[0].Parts, parley.Image("image/png", picture))
	completion, err := connect(t).Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if text := parley.TextOf(completion.GetChoices()[0].GetMessage()); !strings.Contains(text, fmt.Sprintf("%d bytes", len(picture))) {
		t.Errorf("the model did not see the picture: %s", text)
	}
}

func weatherTool() *parleyv1.Tool {
	return &parleyv1.Tool{Kind: &parleyv1.Tool_Function{Function: &parleyv1.FunctionTool{
		Name:           "get_weather",
		Description:    "Tells the weather of a city.",
		ParametersJson: `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`,
	}}}
}

func TestToolRoundTrip(t *testing.T) {
	client := connect(t)
	request := ask(toolsModel, "Shall I take an umbrella?")
	request.Tools = []*parleyv1.Tool{weatherTool()}
	request.ToolChoice = &parleyv1.ToolChoice{Choice: &parleyv1.ToolChoice_Function{Function: "get_weather"}}
	_, answer := collect(t, client, request)

	choice := answer.GetChoices()[0]
	calls := parley.ToolCallsOf(choice.GetMessage())
	if len(calls) != 1 || calls[0].Id == "" || calls[0].Name != "get_weather" {
		t.Fatalf("called %v", calls)
	}
	if choice.FinishReason != parleyv1.FinishReason_FINISH_REASON_TOOL_CALLS {
		t.Errorf("finished for %v", choice.FinishReason)
	}
	var arguments struct{ City *string }
	if err := json.Unmarshal([]byte(calls[0].GetArgumentsJson()), &arguments); err != nil || arguments.City == nil {
		t.Errorf("called with %v: %v", calls[0].Input, err)
	}

	request.ToolChoice = nil
	request.Messages = append(request.Messages, choice.GetMessage(), parley.ToolResult(calls[0].Id, "Rain until 16:40"))
	completion, err := client.Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if text := parley.TextOf(completion.GetChoices()[0].GetMessage()); !strings.Contains(text, "16:40") {
		t.Errorf("the answer does not use the result: %q", text)
	}
}

func TestBadRequestNamesTheField(t *testing.T) {
	request := ask(model, "Hello.")
	request.Temperature = new(9.0)
	_, err := connect(t).Completions.Create(parley.WithRequestID(t.Context(), "bad-1"), request)
	failed := failure(t, err, codes.InvalidArgument)
	if failed.Reason != "INVALID_REQUEST" || failed.Retryable || failed.RequestID != "bad-1" {
		t.Errorf("%#v", failed)
	}
	if len(failed.FieldViolations) != 1 || failed.FieldViolations[0].Field != "temperature" {
		t.Errorf("fields %v", failed.FieldViolations)
	}
	for _, word := range []string{"InvalidArgument", "INVALID_REQUEST", failed.Message, "bad-1"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if details := status.Convert(err).Details(); len(details) < 2 {
		t.Errorf("the status lost its details: %v", details)
	}
}

func TestStrictRefusesUnknownFields(t *testing.T) {
	client := connect(t)
	request := ask(model, "Hello.")
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	request.ProtoReflect().SetUnknown(unknown)

	completion, err := client.Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if omitted := completion.GetReport().GetOmitted(); len(omitted) != 1 || omitted[0].Field != "1000" {
		t.Errorf("omitted %v", omitted)
	}

	request.Strict = true
	_, err = client.Completions.Create(t.Context(), request)
	if failed := failure(t, err, codes.InvalidArgument); !strings.Contains(fmt.Sprint(failed.FieldViolations, failed.Message), "1000") {
		t.Errorf("the refusal does not name the field: %v", err)
	}
}

func TestWrongKey(t *testing.T) {
	client := newClient(t, "sk_parley_wrong")
	check := func(err error) {
		t.Helper()
		failed := failure(t, err, codes.Unauthenticated)
		if failed.Reason != "UNAUTHENTICATED" || failed.Retryable || failed.RequestID == "" || strings.Contains(err.Error(), "sk_parley_wrong") {
			t.Errorf("%v", err)
		}
	}
	_, err := client.Completions.Create(t.Context(), ask(model, "Hello."))
	check(err)
	_, err = client.Models.List(t.Context(), &parleyv1.ListModelsRequest{})
	check(err)
	for _, err := range client.Completions.Stream(t.Context(), ask(model, "Hello.")) {
		check(err)
	}
}

func TestModelNotFound(t *testing.T) {
	client := connect(t)
	_, err := client.Completions.Create(t.Context(), ask("no-such-model", "Hello."))
	if failed := failure(t, err, codes.NotFound); failed.ErrorReason() != parleyv1.ErrorReason_ERROR_REASON_MODEL_NOT_FOUND || failed.RequestID == "" {
		t.Errorf("%#v", failed)
	}
	_, err = client.Models.Get(t.Context(), &parleyv1.GetModelRequest{Id: "no-such-model"})
	if failed := failure(t, err, codes.NotFound); failed.Reason != "MODEL_NOT_FOUND" {
		t.Errorf("%#v", failed)
	}
}

// The client waits twice for the 7 s that the gateway asks for, as the service config says.
func TestAttemptsAndRetryAdvice(t *testing.T) {
	t.Parallel()
	startedAt := time.Now()
	_, err := connect(t).Completions.Create(t.Context(), ask("overloaded", "Hello."))
	failed := failure(t, err, codes.Unavailable)
	if failed.Reason != "UPSTREAM_UNAVAILABLE" || !failed.Retryable || failed.RetryAfter != 7*time.Second {
		t.Errorf("%v, retry %v after %v", failed, failed.Retryable, failed.RetryAfter)
	}
	if len(failed.Attempts) == 0 || failed.Attempts[0].Model != "overloaded" || failed.Attempts[0].GetHttpStatusCode() != 503 {
		t.Errorf("attempts %v", failed.Attempts)
	}
	if strings.Contains(failed.Message, "retries") || strings.Contains(failed.Message, "rpc error") {
		t.Errorf("the message is not the gateway's: %s", failed.Message)
	}
	if waited := time.Since(startedAt); waited < 14*time.Second {
		t.Errorf("asked again before the gateway's wait was over: %v", waited)
	}
}

func TestFallback(t *testing.T) {
	request := ask("overloaded", "Hello.")
	request.FallbackModels = []string{"spare"}
	client := connect(t)
	completion, err := client.Completions.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	_, streamed := collect(t, client, request)
	for name, answer := range map[string]*parleyv1.Completion{"created": completion, "streamed": streamed} {
		attempts := answer.GetReport().GetAttempts()
		if answer.GetModel() != "spare" || parley.TextOf(answer.GetChoices()[0].GetMessage()) != "From the spare model." {
			t.Errorf("%s: %v", name, answer)
		}
		if len(attempts) < 2 || attempts[0].GetHttpStatusCode() != 503 || attempts[len(attempts)-1].GetModel() != "spare" {
			t.Errorf("%s: attempts %v", name, attempts)
		}
	}
}

func TestDeadline(t *testing.T) {
	client := connect(t)
	for name, call := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := client.Completions.Create(ctx, ask("silent", "Hello."))
			return err
		},
		"stream": func(ctx context.Context) (err error) {
			for _, err = range client.Completions.Stream(ctx, ask("silent", "Hello.")) {
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(upstreamCalls(t, "silent"))
			ctx, cancel := context.WithTimeout(parley.WithRequestID(t.Context(), "late-1"), 300*time.Millisecond)
			defer cancel()
			startedAt := time.Now()
			err := call(ctx)
			if waited := time.Since(startedAt); waited < 250*time.Millisecond || waited > 2*time.Second {
				t.Errorf("back after %v", waited)
			}
			failed := failure(t, err, codes.DeadlineExceeded)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || failed.RequestID != "late-1" {
				t.Errorf("%v", err)
			}
			expectClosed(t, "silent", before)
		})
	}
}

func TestLeavingTheLoopCancelsTheCall(t *testing.T) {
	before := len(upstreamCalls(t, "endless"))
	for chunk, err := range connect(t).Completions.Stream(t.Context(), ask("endless", "Hello.")) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk.GetPartDelta().GetText() != "" {
			break
		}
	}
	expectClosed(t, "endless", before)
}

func TestCancelledContext(t *testing.T) {
	before := len(upstreamCalls(t, "endless"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for chunk, err := range connect(t).Completions.Stream(ctx, ask("endless", "Hello.")) {
		if last = err; chunk.GetPartDelta() != nil {
			cancel()
		}
	}
	if failure(t, last, codes.Canceled); !errors.Is(last, context.Canceled) {
		t.Errorf("%v", last)
	}
	expectClosed(t, "endless", before)
}

func TestBrokenStream(t *testing.T) {
	var answer parley.Accumulator
	var last error
	for chunk, err := range connect(t).Completions.Stream(
		parley.WithRequestID(t.Context(), "broken-1"), ask("breaking", "Hello."),
	) {
		if last != nil {
			t.Fatal("the loop went on after the error")
		}
		if last = err; err != nil {
			continue
		}
		if err := answer.Add(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if text := parley.TextOf(answer.Completion().GetChoices()[0].GetMessage()); text != "The beginning of an answer" {
		t.Errorf("before the error came %q", text)
	}
	var failed *parley.Error
	if !errors.As(last, &failed) {
		t.Fatalf("the stream ended with %v", last)
	}
	if failed.Reason == "" || failed.RequestID != "broken-1" || strings.Count(last.Error(), "broken-1") != 1 {
		t.Errorf("%v", last)
	}
}

func TestRetryPolicy(t *testing.T) {
	count := func() int {
		return len(upstreamCalls(t, "overloaded")) + len(upstreamCalls(t, "overloaded-too"))
	}
	var calls callCounter
	client := connect(t, parley.WithDialOptions(grpc.WithStatsHandler(&calls)))
	request := ask("overloaded", "Hello.")
	request.FallbackModels = []string{"overloaded-too"}
	before := count()
	_, err := client.Completions.Create(t.Context(), request)
	failed := failure(t, err, codes.Unavailable)
	if failed.Retryable {
		t.Error("called retryable, after two models were tried")
	}
	if n := calls.Load(); n < 1 || n > 2 {
		t.Errorf("%d calls of the gateway", n)
	}
	if n := count() - before; n < 2 || n > len(failed.Attempts) {
		t.Errorf("%d calls upstream, with the attempts %v", n, failed.Attempts)
	}
}

// callCounter counts the calls that are sent, retries included.
type callCounter struct{ atomic.Int64 }

func (c *callCounter) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); ok {
		c.Add(1)
	}
}
func (c *callCounter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *callCounter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *callCounter) HandleConn(context.Context, stats.ConnStats)                       {}

func TestModelsAndKey(t *testing.T) {
	client := connect(t)
	list, err := client.Models.List(t.Context(), &parleyv1.ListModelsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*parleyv1.Model{}
	for _, model := range list.GetModels() {
		models[model.GetId()] = model
	}
	if models["spare"] == nil || models["alpha-haiku-4.5"] == nil {
		t.Errorf("listed %v", slices.Sorted(maps.Keys(models)))
	}
	one, err := client.Models.Get(t.Context(), &parleyv1.GetModelRequest{Id: "spare"})
	if err != nil || !proto.Equal(one, models["spare"]) {
		t.Errorf("got %v: %v", one, err)
	}
	key, err := client.Key.GetCurrent(t.Context(), &parleyv1.GetCurrentKeyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if key.GetId() == "" || !slices.Contains(key.GetCapabilities(), parleyv1.KeyCapability_KEY_CAPABILITY_CHAT) {
		t.Errorf("key %v", key)
	}
}

func TestHealth(t *testing.T) {
	health := grpc_health_v1.NewHealthClient(connect(t).Conn())
	for _, service := range []string{"", parleyv1.CompletionService_ServiceDesc.ServiceName} {
		answer, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, answer, err)
		}
	}
}

func TestReflection(t *testing.T) {
	stream, err := grpc_reflection_v1.NewServerReflectionClient(connect(t).Conn()).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	for _, want := range []string{"CompletionService", "ModelService", "KeyService"} {
		if !slices.Contains(names, "parley.v1."+want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
}

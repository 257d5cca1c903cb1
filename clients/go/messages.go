package parley

import (
	"strings"

	parleyv1 "parley.dev/go/parley/v1"
)

// UserText returns a message of the user.
func UserText(text string) *parleyv1.Message {
	return &parleyv1.Message{Role: parleyv1.Role_ROLE_USER, Parts: []*parleyv1.Part{Text(text)}}
}

// SystemText returns a message with instructions of the application.
func SystemText(text string) *parleyv1.Message {
	return &parleyv1.Message{Role: parleyv1.Role_ROLE_SYSTEM, Parts: []*parleyv1.Part{Text(text)}}
}

// ToolResult returns a message with the result of one tool call.
func ToolResult(callID, text string) *parleyv1.Message {
	result := &parleyv1.ToolResult{ToolCallId: callID, Parts: []*parleyv1.Part{Text(text)}}
	part := &parleyv1.Part{Kind: &parleyv1.Part_ToolResult{ToolResult: result}}
	return &parleyv1.Message{Role: parleyv1.Role_ROLE_TOOL, Parts: []*parleyv1.Part{part}}
}

// Text returns a part with text.
func Text(text string) *parleyv1.Part {
	return &parleyv1.Part{Kind: &parleyv1.Part_Text{Text: text}}
}

// TextInputs returns texts as the inputs of an embedding request.
func TextInputs(texts ...string) []*parleyv1.EmbeddingInput {
	inputs := make([]*parleyv1.EmbeddingInput, len(texts))
	for i, text := range texts {
		inputs[i] = &parleyv1.EmbeddingInput{Kind: &parleyv1.EmbeddingInput_Text{Text: text}}
	}
	return inputs
}

// Image returns a part with a picture of a media type such as image/png.
func Image(mediaType string, data []byte) *parleyv1.Part {
	image := &parleyv1.Image{MediaType: mediaType, Source: &parleyv1.Image_Data{Data: data}}
	return &parleyv1.Part{Kind: &parleyv1.Part_Image{Image: image}}
}

// TextOf returns the text parts of a message, joined.
func TextOf(message *parleyv1.Message) string {
	var text strings.Builder
	for _, part := range message.GetParts() {
		text.WriteString(part.GetText())
	}
	return text.String()
}

// ToolCallsOf returns the tool calls in a message, in order.
func ToolCallsOf(message *parleyv1.Message) []*parleyv1.ToolCall {
	var calls []*parleyv1.ToolCall
	for _, part := range message.GetParts() {
		if call := part.GetToolCall(); call != nil {
			calls = append(calls, call)
		}
	}
	return calls
}

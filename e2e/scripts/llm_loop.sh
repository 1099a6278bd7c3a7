#!/usr/bin/env bash
# A streaming tool loop of llm: `KEY=… bash llm_loop.sh API BASE MODEL PROMPT`.
set -eu
api=$1 base=$2 model=$3 prompt=$4
functions=$(dirname "$0")/bash_tool.py

case $api in
openai-chat)
  llm openai endpoint "$base/v1" "$prompt" --model "$model" --key "$KEY" --functions "$functions"
  ;;
openai-responses)
  llm openai endpoint "$base/v1" "$prompt" --model "$model" --key "$KEY" --functions "$functions" --responses
  ;;
anthropic-messages)
  export ANTHROPIC_BASE_URL="$base" ANTHROPIC_API_KEY="$KEY"
  llm anthropic refresh
  llm "$prompt" --model "anthropic/$model" --functions "$functions"
  ;;
esac

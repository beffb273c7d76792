import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;

/** Schemas and typed values out of the form in which the tests tell them. */
public class Reading {
    private static final long DAY = 86400000L;
    private static final String LOOSE_MAP = "judges.LooseMap";

    public static Schema schema(JsonNode told) {
        if (told == null || told.isNull()) {
            return null;
        }
        SchemaBuilder made = builder(told);
        if (told.get("optional").asBoolean()) {
            made.optional();
        }
        if (told.has("name")) {
            made.name(told.get("name").textValue());
        }
        if (told.has("version")) {
            made.version(Integer.valueOf(told.get("version").asInt()));
        }
        if (told.has("doc")) {
            made.doc(told.get("doc").textValue());
        }
        for (Iterator each = told.get("parameters").fields(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            made.parameter((String) entry.getKey(), ((JsonNode) entry.getValue()).textValue());
        }
        if (told.has("default")) {
            made.defaultValue(value(made, told.get("default")));
        }
        return made.build();
    }

    private static SchemaBuilder builder(JsonNode told) {
        Schema.Type type = Schema.Type.valueOf(told.get("type").textValue());
        if (type == Schema.Type.ARRAY) {
            return SchemaBuilder.array(schema(told.get("values")));
        }
        if (type == Schema.Type.MAP) {
            return SchemaBuilder.map(schema(told.get("keys")), schema(told.get("values")));
        }
        SchemaBuilder made = SchemaBuilder.type(type);
        if (type == Schema.Type.STRUCT) {
            for (Iterator each = told.get("fields").elements(); each.hasNext();) {
                JsonNode field = (JsonNode) each.next();
                made.field(at(field, 0).textValue(), schema(at(field, 1)));
            }
        }
        return made;
    }

    public static Object value(Schema schema, JsonNode told) {
        if (told.isNull()) {
            return null;
        }
        String name = schema.name();
        if (Decimal.LOGICAL_NAME.equals(name)) {
            return new BigDecimal(told.textValue());
        }
        if (org.apache.kafka.connect.data.Date.LOGICAL_NAME.equals(name)) {
            return new Date(told.asLong() * DAY);
        }
        if (Time.LOGICAL_NAME.equals(name) || Timestamp.LOGICAL_NAME.equals(name)) {
            return new Date(told.asLong());
        }
        Schema.Type type = schema.type();
        if (type == Schema.Type.ARRAY) {
            return array(schema, told);
        }
        if (type == Schema.Type.MAP) {
            return map(schema, told);
        }
        if (LOOSE_MAP.equals(name)) {
            return members(schema, told);
        }
        return type == Schema.Type.STRUCT ? struct(schema, told) : plain(type, told);
    }

    private static Object plain(Schema.Type type, JsonNode told) {
        if (type == Schema.Type.INT8) {
            return Byte.valueOf((byte) told.asInt());
        }
        if (type == Schema.Type.INT16) {
            return Short.valueOf((short) told.asInt());
        }
        if (type == Schema.Type.INT32) {
            return Integer.valueOf(told.asInt());
        }
        if (type == Schema.Type.INT64) {
            return Long.valueOf(told.asLong());
        }
        if (type == Schema.Type.FLOAT32) {
            return Float.valueOf(told.textValue());
        }
        if (type == Schema.Type.FLOAT64) {
            return Double.valueOf(told.textValue());
        }
        if (type == Schema.Type.BOOLEAN) {
            return Boolean.valueOf(told.asBoolean());
        }
        return type == Schema.Type.BYTES ? Base64.getDecoder().decode(told.textValue()) : told.textValue();
    }

    private static List array(Schema schema, JsonNode told) {
        List made = new ArrayList();
        for (Iterator each = told.elements(); each.hasNext();) {
            made.add(value(schema.valueSchema(), (JsonNode) each.next()));
        }
        return made;
    }

    private static Map map(Schema schema, JsonNode told) {
        Map made = new LinkedHashMap();
        for (Iterator each = told.elements(); each.hasNext();) {
            JsonNode entry = (JsonNode) each.next();
            made.put(value(schema.keySchema(), at(entry, 0)), value(schema.valueSchema(), at(entry, 1)));
        }
        return made;
    }

    private static Map members(Schema schema, JsonNode told) {
        Map made = new LinkedHashMap();
        for (Iterator each = schema.fields().iterator(); each.hasNext();) {
            Field field = (Field) each.next();
            made.put(field.name(), value(field.schema(), at(told, field.index())));
        }
        return made;
    }

    /** A null is left out and not put, since putting one where a default stands for it is refused. */
    private static Struct struct(Schema schema, JsonNode told) {
        Struct made = new Struct(schema);
        for (Iterator each = schema.fields().iterator(); each.hasNext();) {
            Field field = (Field) each.next();
            Object value = value(field.schema(), at(told, field.index()));
            if (value != null) {
                made.put(field, value);
            }
        }
        return made;
    }

    /** The cast is for the compiler, which finds two methods here and takes the one of the interface. */
    private static JsonNode at(JsonNode told, int index) {
        return (JsonNode) told.get(index);
    }
}
